"""Syntax trees → bound trees: names resolved, types known. Pure."""
