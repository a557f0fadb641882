"""The text of a session → its statements, of whatever kind. Pure."""
