"""Schema statements: PostgreSQL's tree → statements for plans, their expressions checked. Pure."""
