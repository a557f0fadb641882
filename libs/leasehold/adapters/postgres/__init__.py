"""Sockets of the PostgreSQL protocol, as server and as client."""
