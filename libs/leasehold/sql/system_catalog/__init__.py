"""Rows of pg_catalog, information_schema and the schema leasehold, made from the catalog. Pure."""
