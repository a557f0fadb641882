"""Clocks, threads, files with private modes, and how a process says that it is ready."""
