"""A node as a process: bootstrap, the source of its log, its loop."""
