"""Parsing of DDL and of expressions over a row. PURE."""
