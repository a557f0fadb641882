"""Snapshots of a store over HTTP."""
