"""Startup and authentication of a PostgreSQL connection. Pure."""
