"""How many bytes each station of a way takes at most, each derived from the one before it.

What one station lets through the next one must take, or a row that commits could never be
published and a request that is taken never answered. So the limits stand in one place; the modules
that assert them name them after what they are for. PURE: only values, all in bytes.

A row goes: request → commit → record of the log → image on its rows topic. A request that isn't
accepted goes: request → refusal in the log → dead letter or conflict → answer.
"""

from __future__ import annotations

from typing import Final

# ---------------------------------------------------------------- what a broker takes

MESSAGE: Final = 8 * 1024 * 1024
"""A Kafka message with key, headers and the batch around it: topics and producers are made so."""
ENVELOPE: Final = 64 * 1024
"""Kept free in a message for headers (of which a signature is the longest) and the batch."""
PUBLISHED: Final = MESSAGE - ENVELOPE
"""Key and value of any message as a producer counts them, which is before any packing."""
SEGMENT: Final = 8 * MESSAGE
"""A segment of a topic that is kept for a time: what is written to is deleted last. A broker
refuses what is larger than a segment, so that none is smaller than a message."""
WORTHLESS: Final = 1 << 30
"""Kept of a topic whose records are worth nothing once they are old, however fast they come."""

# ---------------------------------------------------------------- requests

REQUEST_SENT: Final = PUBLISHED
"""A request as it travels: plain, or behind zlib."""
REQUEST: Final = 2 * MESSAGE
"""A request when it is unpacked: 250,000 rows have about this; zlib brings them into a message."""
EXPRESSION_SENT: Final = 900_000
"""The text of one expression or of SQL in a request: more than any text that is parsed, so that
whoever judges the text says why."""
NOTIFIED: Final = MESSAGE // 4
"""What a transaction tells those who listen: the commit has room for its rows beside it."""
STATEMENT: Final = 64 * 1024
"""The text of a schema change, which a job keeps and publishes with each of its steps."""
BLOCK_STATEMENTS: Final = STATEMENT // 2
"""The schema changes of a transaction block; the rest of a request's text is for TRUNCATE."""

# ---------------------------------------------------------------- values

VALUE: Final = 256 * 1024
"""A text in characters, or bytes: one of a row. A character has up to four bytes, so that a value
is an eighth of a message at most."""
CHARACTER: Final = 4
"""What one character of a text takes at most."""

# ---------------------------------------------------------------- the log

COMMIT: Final = 2 * REQUEST
"""A commit, unpacked: its rows as they will be, where the request says what to change."""
COMMIT_SENT: Final = PUBLISHED
"""A commit behind zlib: it has a message of the log to itself."""
UNZIPPED: Final = 2 * COMMIT
"""What a record of the log unpacks to: one commit, and what the master adds. Without a limit a few
bytes become gigabytes of whoever reads them."""
RECORD: Final = 900_000
"""A record that several commits share: less than a MiB, so that it travels in a moment."""
CATALOG: Final = PUBLISHED // 2
"""What a schema change writes at first: its job is published whole at each step, with what it finds
on the way."""
REFUSED_BODY: Final = RECORD // 2
"""Kept of a refused request's bytes where they are too many for its refusal."""
REFUSED_WORDS: Final = 64 * 1024
"""A refusal's words and detail beyond which they are cut: the answer has them."""
REFUSAL: Final = PUBLISHED - ENVELOPE
"""A refusal before any packing: a dead letter and a conflict say the same, with a name more."""

# ---------------------------------------------------------------- what is published

EVENT: Final = MESSAGE // 2
"""A version event: texts are four times as long as JSON at worst where they are cut."""
RESULTS: Final = 1024 * 1024
"""A message of several answers: their readers take a megabyte at a time."""
CHUNK: Final = 500_000
"""The keys of a chunk of several rows; one of a single row has as many as its row's key."""
FAST: Final = 48 * 1024
"""An answer or a record of the log that is told by Redis, too: below what a reader takes of it."""
