"""Sequence values that a node and its sessions have allocated."""
