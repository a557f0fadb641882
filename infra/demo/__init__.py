"""The main job end to end on real parts and real data: `make demo`."""
