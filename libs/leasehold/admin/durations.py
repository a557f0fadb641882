"""How long something has been going on, in words for people."""

from __future__ import annotations


def span(milliseconds: float | None) -> str:
    """Return a time as ``240 ms``, ``3.1 s``, ``4 min 10 s``, ``2 h 5 min``, ``3 d 4 h``; "–" for
    not known."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
