"""The master's side of descriptor leases: which versions are still in use. Pure."""
