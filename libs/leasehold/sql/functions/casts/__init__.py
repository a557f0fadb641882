"""Casts between types, those of the system catalog among them. Pure."""
