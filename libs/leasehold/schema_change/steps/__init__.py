"""The safe states that an element of a table walks through, and in which order. Pure."""
