"""The master's part that moves schema-change jobs from step to step. Pure."""
