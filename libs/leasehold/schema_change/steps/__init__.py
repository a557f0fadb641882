"""The safe states that an element of a table goes through, and their order. Pure."""
