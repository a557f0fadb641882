"""Descriptors of tables and sequences, schema-change jobs, and the catalog of one LSN. Pure."""
