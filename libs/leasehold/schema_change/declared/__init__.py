"""A schema that a file declares, and the statements that lead a living one to it."""
