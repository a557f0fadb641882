"""The agent's side of descriptor leases: what it holds, renews and gives back. Pure."""
