"""SQL values: types, their storage forms, and their text forms. One type, one module. Pure."""
