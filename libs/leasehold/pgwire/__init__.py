"""PURE. The PostgreSQL protocol, version 3: bytes in, calls of a session, bytes out."""
