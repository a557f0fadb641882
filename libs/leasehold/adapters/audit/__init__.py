"""The audit log: events as lines, in a file and on a topic."""
