"""A local cluster in which everybody has just the rights of his kind, and all goes by TLS."""
