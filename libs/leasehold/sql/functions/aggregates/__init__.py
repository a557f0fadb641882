"""Aggregates as plain data. Pure."""
