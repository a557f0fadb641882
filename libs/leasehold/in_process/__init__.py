"""A whole cluster in one process: for the simulation and for `leasehold dev`."""
