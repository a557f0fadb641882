"""Python's DB-API over an embedded replica."""
