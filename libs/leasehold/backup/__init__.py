"""Backups of a database: made beside its running nodes, verified, and restored."""
