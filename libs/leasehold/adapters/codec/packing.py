"""MessagePack packers that are kept: to make one, with its buffer, takes longer than to pack a
commit or a request."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgpack


class Packing(threading.local):
    """A function `pack(value)` for every thread, each with a packer of its own. `default` gives the
    plain form of what MessagePack has none for, or raises TypeError."""

    def __init__(self, default: Callable[[Any], Any]) -> None:
        self.pack: Callable[[Any], bytes] = msgpack.Packer(default=default).pack
