"""Subcommands that bring rows here, or take them elsewhere."""
