"""Redis: the lease ledger and the fast path."""
