"""A node's store in memory, held to the same tests as the one in SQLite."""
