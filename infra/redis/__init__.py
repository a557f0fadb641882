"""A Redis server for the lease ledger."""
