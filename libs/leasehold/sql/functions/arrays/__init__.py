"""Arrays, and functions that give rows. Pure."""
