"""The schemas of feeds in Avro and Protobuf: their numbers, from the registry or remembered.

A schema is registered when the first event is told under it. Its number stands in the feed's state,
in the transaction of that event, so a changefeed that starts again asks nobody. A registry that is
away then holds up what is published for the time that the settings give it; after that the feed is
held (`held_feeds.py`), and all else goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from leasehold.adapters.http.schema_registry import SchemaRegistry
from leasehold.adapters.os.clock import boottime_ns
from leasehold.events.debezium.binary_form import BinaryForm
from leasehold.events.debezium.definition import Compatibility
from leasehold.events.debezium.table_form import TableForm
from leasehold.model.errors import BusUnavailable, ConfigurationError, RegistryUnavailable
from leasehold.replication.feed_state import Feed

NO_REGISTRY: Final = (
    "it needs a schema registry, and the changefeed knows of none: set LEASEHOLD_REGISTRY where it"
    " runs, and make the feed anew"
)


class Heads(NamedTuple):
    """What stands before the bytes of keys and values."""

    key: bytes = b""
    value: bytes = b""


AWAY_NS: Final = 2_000_000_000
"""How long a registry that gave no answer is taken to be away."""
NO_HEADS: Final = Heads()


class FeedSchemas:
    """Numbers of schemas for the feeds of a changefeed. `registry` is None where there is none."""

    def __init__(
        self, registry: SchemaRegistry | None = None, give_up: Callable[[], bool] = lambda: False
    ) -> None:
        self._registry = registry
        self._give_up = give_up
        self._newest: dict[str, tuple[TableForm, Heads]] = {}
        self._away: tuple[int, str] | None = None  # until when nobody asks, and why

    def heads(self, feed: Feed, form: TableForm) -> Heads:
        """Return what stands before a feed's messages under a version of its table. Raises
        RegistryUnavailable, IncompatibleSchema and ConfigurationError; BusUnavailable where the
        changefeed is to end meanwhile."""
        if not isinstance(form, BinaryForm):
            return NO_HEADS
        known = self._newest.get(feed.name)
        if known is not None and known[0] is form:
            return known[1]
        key = b""
        if form.key_columns:
            key = form.head(self._number(feed, form, f"{form.topic}-key", form.key_schema))
        number = self._number(feed, form, f"{form.topic}-value", form.value_schema)
        heads = Heads(key, form.head(number))
        self._newest[feed.name] = form, heads
        return heads

    def begin(self, feed: Feed) -> None:
        """Set the rule that a new feed's definition says, and have its first schemas registered.
        Raises as `heads` does."""
        rule = feed.definition.compatibility
        if isinstance(feed.form, BinaryForm) and rule is not Compatibility.REGISTRY:
            for subject in subjects_of(feed.form):
                self._asked().set_rule(subject, rule.value.upper())
        self.heads(feed, feed.form)

    def forget(self, name: str) -> None:
        """Forget what is known for a feed that is gone."""
        self._newest.pop(name, None)

    def _number(self, feed: Feed, form: BinaryForm, subject: str, text: str) -> int:
        number = feed.schema_id(subject, text)
        if number is None:
            registry = self._asked()
            if self._away is not None and boottime_ns() < self._away[0]:
                raise RegistryUnavailable(self._away[1])
            try:
                number = registry.number_of(subject, form.wire.SCHEMA_TYPE, text)
            except RegistryUnavailable as error:
                # Of many feeds the first one waits for it, and the others with that.
                self._away = boottime_ns() + AWAY_NS, error.message
                if self._give_up():  # that is no reason to end the feed
                    raise BusUnavailable(error.message) from error
                raise
            feed.keep_schema_id(subject, text, number)
        return number

    def _asked(self) -> SchemaRegistry:
        if self._registry is None:
            raise ConfigurationError(NO_REGISTRY)
        return self._registry


def subjects_of(form: TableForm) -> tuple[str, ...]:
    """Return the subjects of a feed's schemas, by its topic's name."""
    value = f"{form.topic}-value"
    return (f"{form.topic}-key", value) if form.key_columns else (value,)
