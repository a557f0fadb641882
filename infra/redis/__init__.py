"""One Redis server for the lease ledger."""
