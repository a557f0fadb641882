"""Checks of a store's tables beside the log: conditions, checksums, slices, and repair."""
