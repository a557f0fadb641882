"""Counts what a database does, in windows of time: a Faust application on its public topics."""
