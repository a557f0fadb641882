"""How commands look at a running database; one sentence if it is away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from leasehold.adapters.clock import unix_us
from leasehold.client.client_settings import ClientSettings
from leasehold.client.cluster_view import ClusterView
from leasehold.client.cluster_watch import ClusterWatch
from leasehold.model.errors import BusUnavailable

FIRST_LOOK_S: Final = 15.0


@contextmanager
def looking(settings: ClientSettings) -> Iterator[tuple[ClusterWatch, ClusterView]]:
    """A watch and its first view. Raises BusUnavailable when Kafka can't be reached."""
    with ClusterWatch(settings) as watch:
        view = watch.first_look(FIRST_LOOK_S)
        why = view.unreachable.get("kafka")
        if why is not None:
            raise BusUnavailable(why)
        yield watch, view


def now_us() -> int:
    return unix_us()
