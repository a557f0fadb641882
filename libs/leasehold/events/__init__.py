"""Public events: descriptor versions and rows as others read them, with their schemas. Pure."""
