"""A SQL session of the PostgreSQL server: statements, transactions, portals, cursors, COPY."""
