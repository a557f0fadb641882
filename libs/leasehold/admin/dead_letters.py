"""Dead letters: requests that could not be applied, as the changefeed keeps them for people."""

from __future__ import annotations

import json
from typing import Any, Final

import msgpack

from leasehold.model.errors import InvalidText, MalformedRequest
from leasehold.model.ids import format_request_id, parse_request_id
from leasehold.model.records.requests import DeadLetter
from leasehold.settings.client import ClientSettings

READ_TIMEOUT_S: Final = 30.0
LETTERS_MAX: Final = 100_000
"""The newest so many are looked at."""


class DeadLetters:
    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings

    def read(self) -> list[tuple[int, DeadLetter]]:
        """Return (offset, letter) up to the topic's end, oldest first. Raises BusUnavailable."""
        from leasehold.adapters.codec.records import MessagePackCodec
        from leasehold.adapters.kafka.reader import ASK_TIMEOUT_S
        from leasehold.adapters.kafka.whole_topic import read_to_end

        codec = MessagePackCodec()
        found: list[tuple[int, DeadLetter]] = []
        for record in read_to_end(
            self._settings.kafka,
            "leasehold-dead-letter",
            self._settings.topics.dead_letter.name,
            READ_TIMEOUT_S,
            newest_max=LETTERS_MAX,
            ask_timeout_s=ASK_TIMEOUT_S,
        ):
            if record.value is None:
                continue
            try:
                letter = codec.decode_as(DeadLetter, record.value)
            except MalformedRequest:
                continue  # of a newer release
            found.append((record.offset, letter))
        return found

    def find(self, name: str) -> tuple[int, DeadLetter] | None:
        """Return the letter with that offset in the topic, or the newest one with that request
        id."""
        if name.isascii() and name.isdigit():
            wanted = int(name)
            return next((found for found in self.read() if found[0] == wanted), None)
        try:
            request_id = parse_request_id(name)
        except InvalidText:
            return None
        letters = [found for found in self.read() if found[1].request_id == request_id]
        return letters[-1] if letters else None


def readable_request(letter: DeadLetter) -> Any:
    """The request as it was sent, as JSON values; text of its bytes where it is neither JSON nor
    MessagePack; None where it was not kept."""
    if letter.body is None:
        return None
    try:
        if "msgpack" in letter.content_type:
            return _plain(msgpack.unpackb(letter.body, strict_map_key=False))
        return json.loads(letter.body)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return letter.body.decode("utf-8", "backslashreplace")


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each, str(key)) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        if name == "id" and len(value) == 16:
            return format_request_id(value)
        return "\\x" + value.hex()  # the text form in which a bytea column takes it back
    return value
