"""Clients that nobody answers hold no round up: they are named."""

from __future__ import annotations

import threading

from tests.faults.round import _await_ended


def test_who_still_waits_is_named_and_the_others_have_ended() -> None:
    answered = threading.Event()
    stuck = threading.Thread(target=answered.wait, name="stuck", daemon=True)
    done = threading.Thread(target=lambda: None, name="done", daemon=True)
    stuck.start()
    done.start()
    try:
        assert _await_ended([stuck, done], 0.05) == "stuck"
    finally:
        answered.set()
    assert _await_ended([stuck, done], 30.0) == ""
