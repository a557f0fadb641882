"""Limits the bytes that may wait on a master and on who may be master next, by queue.

Each is a limit on memory, and what is behind it waits where it stands: messages on their topics,
requests until the broker takes the answers of those before them. What was published and finds no
room its requester asks for again through Kafka.
"""

from __future__ import annotations

from typing import Final

WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of a queue's messages that were read and not decided: reading pauses there. Eight of the largest,
and what a client of Kafka's has fetched ahead comes on top."""
PUBLISHED_WAITING_BYTES_MAX: Final = 16 * 1024 * 1024
"""Requests that wait when one that is published is passed over: each may have 60 kB."""
ANSWERS_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of answers that nodes or the broker hold up: nothing further is decided then."""
UNANSWERED_BYTES_MAX: Final = 4 * ANSWERS_BYTES_MAX
"""Of answers that a standby would have to give: no master lets so many wait, but for a defect.
Beyond it those of the oldest records are dropped; who waits for one asks again (T5)."""
REPEATS_BYTES_MAX: Final = 1024 * 1024
"""Of remembered answers that one record gives again: they stand in no record, whose size would
bound them."""
