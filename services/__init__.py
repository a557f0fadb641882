"""The processes: each reads events, steps a pure core, performs its effects."""
