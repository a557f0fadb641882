"""Arithmetic and mathematics over integers, exact numbers and doubles. Pure."""
