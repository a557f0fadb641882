"""A schema-change job: transitions, control, estimate, acceptance of its chunks. Pure."""
