"""Bound trees → SQLite statements, with the read set that they will have. Pure."""
