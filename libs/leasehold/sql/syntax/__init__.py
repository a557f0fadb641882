"""SQL text → syntax trees. Pure."""
