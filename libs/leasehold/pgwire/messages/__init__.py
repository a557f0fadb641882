"""Messages of the PostgreSQL protocol, from bytes and to bytes. Pure."""
