"""The parts of docs/reference that the code knows, written by a program."""
