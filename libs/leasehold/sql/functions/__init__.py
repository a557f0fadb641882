"""Functions, operators, casts and aggregates of SQL, over storage values. Pure."""
