"""A schema registry by Confluent's REST API: which number a schema has, and whether it may follow.

A call has one deadline, whatever is tried within it: each address in turn, and again after a pause
that grows. What the registry decides (a schema that is incompatible, a user whom it does not know)
is told at once; only what another try may mend is tried again.
(API: https://docs.confluent.io/platform/current/schema-registry/develop/api.html)
"""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Event
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import IncompatibleSchema, RegistryUnavailable
from leasehold.settings.schema_registry import LOOK_UP, SchemaRegistrySettings

ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
BLOCK_BYTES: Final = 64 * 1024
CACHED_MAX: Final = 1_000
"""Schemas that are kept by their numbers."""
PAUSE_S: Final = 0.1
PAUSE_S_MAX: Final = 2.0
REASONS_MAX: Final = 20
WORDS_CHARACTERS_MAX: Final = 300
CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MAY_PASS: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, *range(500, 600)}
)
_NO_SUBJECT: Final = frozenset({40401, 40402})
"""What a registry says of a subject, or a version of one, that it does not have."""
_NO_SCHEMA: Final = frozenset({40403})
"""What it says of a number that no schema has. ⚠ Not 404 alone: so answers whoever is no registry
at all, and what asks would take each of its messages for one that nobody can read."""
_WORDS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "it does not know the user (LEASEHOLD_REGISTRY_USERNAME)",
    HTTPStatus.FORBIDDEN: "the user may not do that",
    HTTPStatus.NOT_FOUND: "it is not there",
}
_AVRO: Final = "AVRO"


class Verdict(NamedTuple):
    """Whether a schema may follow those that a subject has; `reasons` say why not."""

    compatible: bool
    reasons: tuple[str, ...] = ()


class RegisteredSchema(NamedTuple):
    kind: str
    text: str


class SchemaRegistry:
    """The registry of the settings, which have a URL. Its methods raise RegistryUnavailable where
    it does not answer within `wait_s` (or when `give_up` says so), and IncompatibleSchema where it
    says no."""

    def __init__(
        self,
        settings: SchemaRegistrySettings,
        wait_s: float | None = None,
        give_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """Describe a registry; nothing is asked yet. Raises ConfigurationError."""
        assert settings.urls is not None, "there is a registry"
        self._settings = settings
        self._wait_s = settings.wait_ms / 1e3 if wait_s is None else wait_s
        self._give_up = give_up
        self._urls = [url.strip().rstrip("/") for url in settings.urls.split(",")]
        secure = any(url.startswith("https:") for url in self._urls)
        self._tls: ssl.SSLContext | None = settings.ssl_context() if secure else None
        self._schemas: OrderedDict[int, RegisteredSchema] = OrderedDict()
        self._pause = Event()  # never set

    def number_of(self, subject: str, kind: str, text: str) -> int:
        """Return the number of a schema under a subject; it is registered where the settings let
        that be done."""
        path = f"/subjects/{quote(subject, safe='')}"
        if self._settings.schemas != LOOK_UP:
            path += "/versions"
        answer = self._ask("POST", path, _body(kind, text), what=f"subject {subject}")
        found = answer.get("id") if isinstance(answer, dict) else None
        if type(found) is not int or not 0 <= found < 1 << 31:
            raise RegistryUnavailable(
                f"the schema registry gave no number for subject {subject}: {answer!r:.200}"
            )
        return found

    def find_schema(self, number: int) -> RegisteredSchema | None:
        """Return the schema of a number, None where none has it."""
        known = self._schemas.get(number)
        if known is not None:
            self._schemas.move_to_end(number)
            return known
        path = f"/schemas/ids/{number:d}"
        answer = self._ask("GET", path, what=f"schema {number}", missing={}, codes=_NO_SCHEMA)
        if answer == {}:
            return None
        text = answer.get("schema") if isinstance(answer, dict) else None
        if not isinstance(text, str):
            raise RegistryUnavailable(f"the schema registry has no text for schema {number}")
        made = self._schemas[number] = RegisteredSchema(answer.get("schemaType", _AVRO), text)
        if len(self._schemas) > CACHED_MAX:
            self._schemas.popitem(last=False)
        return made

    def verdict(self, subject: str, kind: str, text: str) -> Verdict:
        """Return whether a schema may follow those of a subject, by the rule that it has; one that
        has none yet may begin with any."""
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions?verbose=true"
        answer = self._ask("POST", path, _body(kind, text), missing={"is_compatible": True})
        if not isinstance(answer, dict) or not isinstance(answer.get("is_compatible"), bool):
            raise RegistryUnavailable(
                f"the schema registry does not say whether {subject} is compatible: {answer!r:.200}"
            )
        said = answer.get("messages")
        reasons = [str(each)[:WORDS_CHARACTERS_MAX] for each in said or () if each]
        return Verdict(answer["is_compatible"], tuple(reasons[:REASONS_MAX]))

    def set_rule(self, subject: str, rule: str) -> None:
        """Set what new schemas of a subject must keep: `BACKWARD`, `FULL_TRANSITIVE`, …"""
        path = f"/config/{quote(subject, safe='')}"
        self._ask("PUT", path, {"compatibility": rule}, what=f"the rule of subject {subject}")

    # ------------------------------------------------------------------ calls

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        what: str = "",
        missing: Any = None,
        codes: Collection[int] = _NO_SUBJECT,
    ) -> Any:
        """Return the answer's JSON; `missing` where it says by one of `codes` that what is asked
        about is not there."""
        data = None if body is None else json.dumps(body).encode()
        until_ns = boottime_ns() + int(self._wait_s * 1e9)
        pause_s, words = PAUSE_S, ""
        while True:
            for url in self._urls:
                left_s = (until_ns - boottime_ns()) / 1e9
                if left_s <= 0:
                    break
                try:
                    status, answer = self._call(method, url, path, data, left_s)
                except (OSError, HTTPException, ssl.SSLError) as error:
                    words = f"{_shown(url)}: {error!s:.200}"
                    continue
                if 200 <= status < 300:
                    return _read(answer, url)
                code, said = _told(answer)
                if code in codes and missing is not None:
                    return missing
                if status not in _MAY_PASS:
                    raise _refusal(status, said, what)
                words = f"{_shown(url)}: {status} {said}"
            if self._give_up():
                raise RegistryUnavailable(f"the schema registry was not waited for ({words})")
            left_s = (until_ns - boottime_ns()) / 1e9
            if left_s <= 0:
                raise RegistryUnavailable(
                    f"the schema registry gave no answer within {self._wait_s:g} s ({words})"
                )
            self._pause.wait(min(pause_s, left_s))
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def _call(
        self, method: str, url: str, path: str, data: bytes | None, left_s: float
    ) -> tuple[int, bytes]:
        """Return the status and the body of one answer. Raises OSError and HTTPException."""
        address = urlsplit(url)
        assert address.hostname is not None, url
        timeout_s = min(left_s, self._settings.timeout_ms / 1e3)
        connection = HTTPConnection(address.hostname, address.port, timeout=timeout_s)
        if address.scheme == "https":
            connection = HTTPSConnection(
                address.hostname, address.port, timeout=timeout_s, context=self._tls
            )
        until_ns = boottime_ns() + int(timeout_s * 1e9)
        try:
            connection.request(method, address.path + path, body=data, headers=self._headers())
            response = connection.getresponse()
            return response.status, _read_whole(response, until_ns)
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": f"{CONTENT_TYPE}, application/json", "Content-Type": CONTENT_TYPE}
        if self._settings.username is not None:
            login = f"{self._settings.username}:{self._settings.password}".encode()
            headers["Authorization"] = f"Basic {b64encode(login).decode()}"
        return headers


def _read_whole(response: HTTPResponse, until_ns: int) -> bytes:
    data = bytearray()
    while block := response.read1(BLOCK_BYTES):
        data += block
        if len(data) > ANSWER_BYTES_MAX:
            raise HTTPException(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
        if boottime_ns() > until_ns:
            raise TimeoutError("the answer took too long")
    return bytes(data)


def _body(kind: str, text: str) -> dict[str, str]:
    # Registries of before they knew other kinds refuse the word.
    return {"schema": text} if kind == _AVRO else {"schema": text, "schemaType": kind}


def _read(answer: bytes, url: str) -> Any:
    try:
        return json.loads(answer) if answer else {}
    except (ValueError, RecursionError) as error:
        raise RegistryUnavailable(
            f"{_shown(url)} is no schema registry: its answer is no JSON ({error!s:.100})"
        ) from error


def _told(answer: bytes) -> tuple[Any, str]:
    """Return the code and the words of an answer that is no success."""
    code = None
    try:
        body = json.loads(answer)
        words, code = str(body["message"]), body.get("error_code")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        words = answer[:WORDS_CHARACTERS_MAX].decode(errors="replace")
    return code, " ".join(words.split())[:WORDS_CHARACTERS_MAX]


def _refusal(status: int, said: str, what: str) -> IncompatibleSchema | RegistryUnavailable:
    if status in (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY):
        return IncompatibleSchema(f"the schema registry refuses {what}: {said}")
    words = _WORDS.get(status)
    return RegistryUnavailable(
        f"the schema registry says {status} of {what or 'that'}{f', {words}' if words else ''}:"
        f" {said}"
    )


def _shown(url: str) -> str:
    address = urlsplit(url)
    return f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"
