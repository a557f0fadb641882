"""Dates, times and intervals: arithmetic, fields, templates. Pure."""
