"""Values in the text and binary formats of the PostgreSQL protocol. Pure."""
