"""Spark's driver at each of its works, one process for all modules: a JVM takes seconds to start.
A package, as `cluster/changes` is one. Jobs and tables of a module have numbers of their own."""

from typing import Final

ATTEMPTS_MAX: Final = 3
"""Few, so that the end comes soon."""
