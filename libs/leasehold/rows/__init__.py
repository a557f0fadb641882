"""Keys, index entries, defaults, generated columns and checks of a row at a version. Pure."""
