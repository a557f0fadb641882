"""A node's store in SQLite."""
