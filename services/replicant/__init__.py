"""A replicant process: a node that answers reads."""
