"""Names by which processes that are no nodes are listed."""

from __future__ import annotations

import os
import socket
from typing import Final

LETTERS_MAX: Final = 200


def process_name(role: str, called: str = "") -> str:
    """Return `role called`; without what it is called, after its host and its number."""
    return f"{role} {called or process_place()}"[:LETTERS_MAX]


def process_place() -> str:
    """Return the host and the number of this process."""
    return f"{socket.gethostname()}/{os.getpid()}"
