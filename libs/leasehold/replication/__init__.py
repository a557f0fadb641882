"""The log, the master, coherency and outcomes. PURE."""
