"""Bytes of a message → a decoded value: JSON, or by the number of a schema that a registry has.

A registry is asked by a thread of its own, so that events which need no new schema go on: whoever
needs one that is not there yet is told to wait.
"""

from __future__ import annotations

import json
import logging
import math
from collections import OrderedDict
from decimal import Decimal
from threading import Lock
from typing import Any, Final

from leasehold.adapters.http.schema_registry import RegisteredSchema, SchemaRegistry
from leasehold.adapters.os.worker_threads import WorkerThreads
from leasehold.events.foreign import avro_decoding
from leasehold.events.foreign.avro_decoding import AvroSchema
from leasehold.events.foreign.row_events import Decoded, without_schema
from leasehold.model import byte_limits
from leasehold.model.errors import (
    ConfigurationError,
    LeaseholdError,
    MalformedRequest,
    RequestTooLarge,
)
from leasehold.settings.intake import AUTO, REGISTRY

HEAD_BYTES: Final = 5
MESSAGE_BYTES_MAX: Final = byte_limits.REQUEST
"""Of a message; a request is never larger."""
SCHEMAS_MAX: Final = 1_000
FETCHES_MAX: Final = 16
"""Schemas that are asked for at once."""
DIGITS_SURE: Final = 15
"""A number of so many characters is what the double of it shows again."""
LOG: Final = logging.getLogger("leasehold.intake")


class Held(Exception):
    """Raised where an event has to wait, and all that stands behind it in its partition. `words`:
    what it waits for."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class Schemas:
    """Schemas by their numbers. `find` may be called by one thread; a registry that is away is
    asked again whenever somebody waits for it."""

    def __init__(self, registry: SchemaRegistry | None) -> None:
        """Ask nobody yet. `registry` None: there is none."""
        self._registry = registry
        self._workers = WorkerThreads("schemas", 1)
        self._lock = Lock()
        self._read: OrderedDict[int, AvroSchema | MalformedRequest | None] = OrderedDict()
        self._asked: set[int] = set()
        self._found: dict[int, RegisteredSchema | MalformedRequest | None] = {}
        self._words = ""  # why the last question had no answer

    def find(self, number: int) -> AvroSchema | None:
        """Return what reads messages with that schema, None where they are JSON. Raises Held, and
        MalformedRequest for one that nobody has or can read."""
        if number not in self._read:
            self._read[number] = self._answer(number)
            while len(self._read) > SCHEMAS_MAX:
                self._read.popitem(last=False)
        self._read.move_to_end(number)
        found = self._read[number]
        if isinstance(found, MalformedRequest):
            raise found
        return found

    def _answer(self, number: int) -> AvroSchema | MalformedRequest | None:
        """Return what the registry has said. Raises Held as long as it has not."""
        if self._registry is None:
            raise Held("a schema registry: set LEASEHOLD_REGISTRY, and start the intake again")
        with self._lock:
            if number not in self._found:
                words = self._words
                if number not in self._asked and len(self._asked) < FETCHES_MAX:
                    self._asked.add(number)
                    self._workers.submit(lambda: self._fetch(number))
                raise Held(f"schema {number} of the schema registry{words and f' ({words})'}")
            found = self._found.pop(number)
        if not isinstance(found, RegisteredSchema):
            return found or MalformedRequest(f"the schema registry has no schema {number}")
        if found.kind == "JSON":
            return None
        if found.kind != "AVRO":
            return MalformedRequest(f"its schema {number} is {found.kind}: Avro and JSON are read")
        try:
            return avro_decoding.read_schema(found.text)
        except MalformedRequest as error:
            return MalformedRequest(f"schema {number}: {error.message}")

    def _fetch(self, number: int) -> None:
        """Ask the registry; on the thread of questions, so it never raises."""
        assert self._registry is not None, "who asks has one"
        words, found = "", None
        answered = False
        try:
            found = self._registry.find_schema(number)
            answered = True
        except LeaseholdError as error:
            words = error.message
        except Exception as error:  # a defect must not end the thread
            LOG.exception("asking for schema %d failed inside", number)
            words = f"asking failed inside: {error!r:.200}"
        with self._lock:
            self._asked.discard(number)
            self._words = words
            if answered:
                self._found[number] = found

    def close(self) -> None:
        """End the thread, and wait a moment for it."""
        self._workers.stop(0.5)


class Decoder:
    """Reads the messages of one intake."""

    def __init__(self, encoding: str, schemas: Schemas) -> None:
        """Read what has that encoding, as the settings say it."""
        self._encoding = encoding
        self._schemas = schemas

    def read(self, data: bytes) -> Decoded:
        """Return what a message holds. Raises MalformedRequest, RequestTooLarge, and Held."""
        if len(data) > MESSAGE_BYTES_MAX:
            raise RequestTooLarge(
                f"it has {len(data)} bytes; at most {MESSAGE_BYTES_MAX} become a request"
            )
        framed = data[:1] == b"\x00"
        if self._encoding != REGISTRY and not (framed and self._encoding == AUTO):
            return without_schema(parse(data))
        if not framed or len(data) < HEAD_BYTES:
            raise MalformedRequest(
                "it is not in Confluent's wire format, which begins with a zero byte and the"
                " number of a schema"
            )
        schema = self._schemas.find(int.from_bytes(data[1:HEAD_BYTES], "big"))
        if schema is None:
            return without_schema(parse(data[HEAD_BYTES:]))
        value = avro_decoding.decode(schema, data, HEAD_BYTES)
        return Decoded(value, schema.fields, schema.records)


def parse(data: bytes) -> Any:
    """Return the value of a JSON text, of numbers all their digits. Raises MalformedRequest."""
    try:
        return json.loads(data.decode("utf-8"), parse_float=_number)
    except UnicodeDecodeError as error:
        raise MalformedRequest(f"it is neither JSON nor UTF-8 (byte {error.start})") from error
    except RecursionError as error:
        raise MalformedRequest("its JSON is nested too deeply") from error
    except ValueError as error:
        raise MalformedRequest(f"it is no JSON: {error!s:.200}") from error


def _number(text: str) -> float | Decimal:
    value = float(text)
    if len(text) <= DIGITS_SURE:
        return value
    exact = Decimal(text)
    return value if math.isfinite(value) and Decimal(repr(value)) == exact else exact


def needs_registry(encoding: str, urls: str | None) -> None:
    """Check that there is a registry where the settings need one. Raises ConfigurationError."""
    if encoding == REGISTRY and urls is None:
        raise ConfigurationError(
            "LEASEHOLD_INTAKE_ENCODING=registry needs LEASEHOLD_REGISTRY, the registry's address"
        )
