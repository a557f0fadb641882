"""Passwords in statements: replaced by their verifiers before anybody else sees the text.

A session does so with each text that a client sends, as the first of all things: what stands in
activity, requests, the log, dead letters and errors then has no password.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from leasehold.pgwire.auth.scram_server import verifier_of_password, verifier_of_text
from leasehold.sql.syntax.parsing import Parsed, parse
from leasehold.sql.syntax.statement import Reading, Words

_WORD: Final = "password"
_KINDS: Final = frozenset({"CreateRoleStmt", "AlterRoleStmt"})


def has_passwords(text: str) -> bool:
    """Return whether a text may have a password in it; of most texts it surely has none."""
    return _WORD in text.lower()


def is_verifier(password: str) -> bool:
    try:
        verifier_of_text(password)
    except ValueError:
        return False
    return True


def with_verifiers(text: str, salt: Callable[[], bytes]) -> str:
    """Return the text with each password of CREATE and ALTER ROLE replaced by a verifier, whose
    salt is drawn from `salt`. Raises what the parser raises, whose words have no password: it is
    said of where the text is wrong."""
    if not has_passwords(text):
        return text
    parsed = parse(text)
    encoded = text.encode()
    changed, end = bytearray(), 0
    for begin, stop, password in _passwords(parsed):
        made = str(verifier_of_password(password, salt()))
        changed += encoded[end:begin] + f"'{made}'".encode()
        end = stop
    return (changed + encoded[end:]).decode() if end else text


def _passwords(parsed: tuple[Parsed, ...] | list[Parsed]) -> Iterator[tuple[int, int, str]]:
    """Yield where each password's constant begins and ends, in bytes, and the password."""
    if not any(each.kind in _KINDS for each in parsed):
        return
    words = Words(parsed[0].source)
    for each in parsed:
        if each.kind not in _KINDS:
            continue
        reading = Reading(each, words)
        for node in each.body.get("options", []):
            option: Any = node["DefElem"]
            password = option.get("arg", {}).get("String", {}).get("sval", "")
            if option["defname"] != _WORD or not password or is_verifier(password):
                continue
            place = reading.next(reading.at(option["location"]), _WORD) + 1
            token = reading.tokens[place]
            yield token.begin, token.end, password
