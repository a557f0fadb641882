"""How commands look at a running database; one sentence if it is away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.cli.output import Output
from leasehold.model.errors import BusUnavailable
from leasehold.settings.client import ClientSettings

FIRST_LOOK_S: Final = 15.0
WHOLE_LOOK_S: Final = 120.0
"""Longest that a command reads the topics before it says that it can't tell."""
NOTE_EVERY_S: Final = 5.0


@contextmanager
def looking(
    settings: ClientSettings, output: Output, *, whole: bool = True, follows: bool = False
) -> Iterator[tuple[ClusterWatch, ClusterView]]:
    """Yield a watch and its first view, of everything that stands on the topics. With `whole` False
    the view may have gaps (`ClusterView.gaps`) after FIRST_LOOK_S, and the caller has to name them.
    `follows`: the caller looks on for long.

    Raises BusUnavailable when Kafka can't be reached, or the topics could not be read to their ends
    in WHOLE_LOOK_S: what is missing must not look as if it did not exist.
    """
    with ClusterWatch(settings, brief=not follows) as watch:
        view = watch.first_look(FIRST_LOOK_S)
        if whole:
            view = _read_whole(watch, view, output)
        why = view.unreachable.get("kafka")
        if why is not None:
            raise BusUnavailable(why)
        yield watch, view


def _read_whole(watch: ClusterWatch, view: ClusterView, output: Output) -> ClusterView:
    give_up_ns = boottime_ns() + int((WHOLE_LOOK_S - FIRST_LOOK_S) * 1e9)
    while (gaps := view.gaps(unix_us())) and "kafka" not in view.unreachable:
        words = "; ".join(gaps)
        if boottime_ns() > give_up_ns:
            raise BusUnavailable(
                f"what stands on the topics is not known after {WHOLE_LOOK_S:.0f} s: {words}; "
                "look at the load of the brokers and of this machine, then try again"
            )
        output.note(f"{words} …")
        watch.wait_for(lambda seen: not seen.gaps(unix_us()), NOTE_EVERY_S)
        view = watch.view
    return view
