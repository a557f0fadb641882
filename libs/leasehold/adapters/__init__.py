"""The only code that touches the world: one file per thing touched."""
