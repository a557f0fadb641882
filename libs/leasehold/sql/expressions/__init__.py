"""Expressions that descriptors keep, as closures over rows. Pure."""
