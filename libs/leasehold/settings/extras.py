"""What an installation lacks that was made without one of the package's extras."""

from __future__ import annotations

from importlib.util import find_spec

from leasehold.model.errors import ConfigurationError


def need_extra(extra: str, what: str, *modules: str) -> None:
    """Raises ConfigurationError with the command that installs them, if one of `modules` can't be
    found. They are looked for without being imported: top-level names alone."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise ConfigurationError(
            f"{what} needs what is not installed here ({', '.join(missing)}); run:"
            f" pip install 'leasehold[{extra}]'"
        )
