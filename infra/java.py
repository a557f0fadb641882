"""The Java by which JVMs are started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def java(environ: Mapping[str, str]) -> str:
    """JAVA_HOME's, else the PATH's."""
    home = environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"
