"""The messages of feeds: an event's rows in their form at once, its bytes when they are sent.

What can't be told is found before anything of the transaction is sent, so that a transaction that
is sent again has the same messages.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.adapters.codec.records import row_key
from leasehold.adapters.kafka.writer import BY_KEY
from leasehold.changefeed.feed_schemas import FeedSchemas, Heads
from leasehold.events.debezium.envelope import begin_message, end_message
from leasehold.events.debezium.table_form import MESSAGE_BYTES_MAX
from leasehold.model.errors import BusUnavailable, LeaseholdError, RegistryUnavailable
from leasehold.replication.feed_state import FAILED
from leasehold.replication.table_feeds import RowTold, Told, TransactionTold

KEY_BYTES_MAX: Final = MESSAGE_BYTES_MAX // 4
LOG: Final = logging.getLogger("leasehold.changefeed")


class FeedMessage(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int = BY_KEY


class PreparedRow(NamedTuple):
    """An event with its rows as they are told, and what stands before the bytes of its value; that
    of its key stands there already."""

    told: RowTold
    key: bytes | None
    before: Any
    after: Any
    head: bytes


Prepared: TypeAlias = PreparedRow | TransactionTold


def prepare_until_held(
    told: Sequence[Told], place: int, schemas: FeedSchemas, into: list[Any]
) -> tuple[int, RegistryUnavailable | None]:
    """Add to `into` the events from `place` on as they will be sent. Return the place of the first
    one whose feed is held, or has to be since its registry gave no answer, with that; their number
    where there is none. Raises BusUnavailable as `prepare` does."""
    for at in range(place, len(told)):
        event = told[at]
        if isinstance(event, RowTold) and event.feed.hold is not None:
            return at, None
        try:
            prepared = prepare(event, schemas)
        except RegistryUnavailable as error:
            return at, error
        if prepared is not None:
            into.append(prepared)
    return len(told), None


def prepare(told: Told, schemas: FeedSchemas) -> Prepared | None:
    """Return an event as it will be sent; None where its feed has failed. A row that has no form,
    or whose key no message has room for, ends its feed: one that went on without it would be wrong
    for ever. So does a schema that its registry does not take. Raises RegistryUnavailable where it
    gives no answer, and BusUnavailable where the changefeed is to end while it is waited for."""
    if isinstance(told, TransactionTold):
        return told
    feed, form = told.feed, told.form
    if feed.status == FAILED:
        return None
    try:
        heads = schemas.heads(feed, form)
    except (BusUnavailable, RegistryUnavailable):
        raise
    except LeaseholdError as error:
        LOG.error("the feed %s has no schema, and ends: %s", feed.name, error.message)
        feed.fail(error.message)
        return None
    return prepare_row(told, heads)


def prepare_row(told: RowTold, heads: Heads) -> PreparedRow | None:
    """Return an event with what stands before its bytes; None where its feed fails by it."""
    feed, form = told.feed, told.form
    try:
        key = _key_of(told, heads)
        if key is not None and len(key) > KEY_BYTES_MAX:
            feed.fail(f"the key of row {told.key!r:.100} has {len(key)} bytes")
            return None
        before, after = form.row(told.key, told.before), form.row(told.key, told.after)
    except Exception as error:
        LOG.exception("the feed %s can't tell of row %.200r, and ends", feed.name, told.key)
        feed.fail(f"row {told.key!r:.100} can't be told ({type(error).__name__}): {error!s:.200}")
        return None
    return PreparedRow(told, key, before, after, heads.value)


def _key_of(told: RowTold, heads: Heads) -> bytes | None:
    key = told.form.key(told.key) if told.key else None
    return None if key is None else heads.key + key


def messages_of(
    prepared: Prepared,
    partitions: Mapping[str, int],
    transactions: str,
    now_us: int,
    taken: int = 0,
) -> list[FeedMessage]:
    """Return the messages of an event. `partitions`: how many each topic of a feed has;
    `transactions` is the topic of transactions. `taken`: bytes of a message that are not for
    it."""
    if isinstance(prepared, TransactionTold):
        of = prepared.transaction, prepared.commit_us
        counts = prepared.counts
        key_and_value = end_message(*of, counts) if counts else begin_message(*of)
        return [FeedMessage(transactions, *key_and_value)]
    told, key, before, after, head = prepared
    definition, topic = told.feed.definition, told.form.topic
    room = MESSAGE_BYTES_MAX - taken - len(key or b"") - len(head)
    about = told.source, told.block, now_us, room
    value = head + told.form.value(told.op, before, after, *about)
    if told.op == "t":  # on each partition: none of its rows is there any more
        return [FeedMessage(topic, None, value, each) for each in range(partitions[topic])]
    partition = BY_KEY
    if key is None:  # what happens to a row stays in its order all the same
        partition = zlib.crc32(row_key(told.key)) % partitions[topic]
    message = FeedMessage(topic, key, value, partition)
    if told.op == "d" and definition.tombstones and key is not None:
        return [message, FeedMessage(topic, key, None, partition)]
    return [message]
