"""Whether this process runs what mypyc has compiled, or Python's interpreter runs all of it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from leasehold import __version__

_ONE_OF_THEM: Final = "leasehold.transaction.verify"
"""Compiled in every build: all of them are, or none (`infra/compiled.py`)."""


def version_line() -> str:
    """Return the program's version and how it runs: `leasehold 0.1.0, compiled` or `…,
    interpreted`."""
    spec = find_spec(_ONE_OF_THEM)
    assert spec is not None, _ONE_OF_THEM
    assert spec.origin is not None, _ONE_OF_THEM
    how = "interpreted" if spec.origin.endswith(".py") else "compiled"
    return f"leasehold {__version__}, {how}"
