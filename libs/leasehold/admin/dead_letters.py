"""Dead letters: requests that could not be applied, as the changefeed keeps them for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgpack

from leasehold.model.errors import InvalidText, MalformedRequest
from leasehold.model.ids import format_request_id, parse_request_id
from leasehold.model.records.requests import DeadLetter
from leasehold.settings.client import ClientSettings

READ_TIMEOUT_S: Final = 30.0
LETTERS_MAX: Final = 100_000
"""The newest so many are looked at."""
OF_FIRST_TRY: Final = frozenset(("id", "attempt", "give_up", "reply_to", "used", "reads", "fence"))
"""Fields of a request that belong to its first sender and to what that one had read: who submits it
again has its own."""


ADVICE: Final[Mapping[str, str]] = {
    "40001": "Its row kept changing under it. Submit it again, or with a smaller transaction.",
    "42P01": "Create the table first, or correct its name; then submit it again.",
    "42703": "Correct the column's name, or submit it again once the column is public.",
    "22023": "Leave schema_version out, or name one that exists.",
    "23502": "Give a value for the column.",
    "23505": "A row with that key is there already: an update or upsert is what fits.",
    "54000": "Split the transaction: it can never fit into one record of the log.",
    "08P01": "Correct the request's form (the message names the field).",
    "28000": "It proves no role: its sender needs LEASEHOLD_REQUEST_KEY (leasehold role key).",
    "42501": "Grant its role what it lacks, or have another one ask.",
    "LH001": "Its id was made too long ago; submitting it again gives it a new one.",
    "LH002": "Its producer's clock, or the master's, was wrong; submitted again it has a new id.",
}
"""What helps, by SQLSTATE."""
ADVICE_ELSE: Final = "Correct what the message names; submit it again."


class DeadLetters:
    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings

    def read(self, newest_max: int = LETTERS_MAX) -> list[tuple[int, DeadLetter]]:
        """Return (offset, letter) up to the topic's end, oldest first: those of its newest so many
        records. Raises BusUnavailable."""
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
            newest_max=newest_max,
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


def letter_report(offset: int, letter: DeadLetter) -> dict[str, Any]:
    """Return a letter as plain data: names of the result are part of the command's promise."""
    return {
        "offset": offset,
        "id": id_words(letter),
        "attempt": letter.attempt,
        "code": letter.code,
        "message": letter.message,
        "detail": dict(letter.detail),
        "decided_us": letter.decided_us,
        "lane": letter.queue,
        "lane_offset": letter.offset,
        "content_type": letter.content_type,
        "request": readable_request(letter),
        "asked_by": letter.principal,
    }


def advise(code: str) -> str:
    """Return what helps against a refusal."""
    return ADVICE.get(code, ADVICE_ELSE)


def id_words(letter: DeadLetter) -> str:
    """Return the id of a letter's request as people write it."""
    return format_request_id(letter.request_id) if len(letter.request_id) == 16 else "no id"


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
