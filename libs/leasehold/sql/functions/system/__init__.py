"""Functions that ask the session, its node, sequences or the system catalog. Pure."""
