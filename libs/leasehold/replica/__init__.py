"""The embedded replica: coherent reads, writes through the master, transactions."""
