"""Descriptor leases: the agent's side and the cluster's side (D1-D9); see DESIGN.md."""
