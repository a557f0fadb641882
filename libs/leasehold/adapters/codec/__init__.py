"""Records of the log and change requests as bytes."""
