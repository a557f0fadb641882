"""Change requests in JSON and MessagePack: of every kind, with all fields, spoiled as fields and as
bytes, signed, unsigned and signed wrongly; and chunks of backfills beside them."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NamedTuple

from leasehold.adapters.codec.request_bytes import pack_fields
from leasehold.model.ids import format_request_id
from leasehold.model.signatures import RequestKeys, derive_role_key, signer
from tests.isolation.fuzz.bad_statements import STATEMENTS
from tests.isolation.fuzz.spoiling import ODD, json_spoiled, one_byte_spoiled
from tests.isolation.fuzz.whole_database import WholeDatabase

MASTER: Final = b"m" * 40
KEYS: Final = RequestKeys(master=(MASTER,))
OF_ROLE: Final = RequestKeys(of_role=derive_role_key(MASTER, "sim", "ann", "16384.0"))
OTHERS: Final = RequestKeys(master=(b"o" * 40,))
UNSIGNED: Final = "guest"
DDL: Final = tuple(
    sql
    for sql in STATEMENTS
    if sql.split()[0] in ("create", "alter", "drop", "grant", "revoke", "truncate", "comment")
)
VALUES: Final[tuple[Any, ...]] = (
    *(1, 0, -5, 2**63 - 1, 2**63, 1.5, "x", "", None, True, "9" * 500, "a" * 5_000, "\x00", "漢"),
    *({"expr": "a + 1"}, {"expr": "a + $1", "args": [1], "types": ["integer"]}, {"expr": "1/0"}),
    *({"expr": "(" * 200}, {"expr": "repeat('x', 99999999)"}, {"expr": ""}, {"expr": 5}, [1], {}),
    *({"expr": "$1", "args": [], "types": ["int"]}, {"expr": "now()"}, {"expr": "(select 1)"}),
    *({"expr": "a", "args": [[1]] * 9, "types": ["nothing"]}, "2024-01-01", "NaN", float("inf")),
)
NAMES: Final = ("t", "u", "id", "a", "b", "row", "x", "", "T", "pg_class", "\x00", "漢" * 30)


class Sent(NamedTuple):
    """A message on a queue of the master, as it came in."""

    topic: str
    content_type: str | None
    body: bytes
    pause_ms: int


class RequestDatabase(WholeDatabase):
    """Masters have a key. Unsigned requests are a guest's, who may do what it was granted."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, keys=KEYS, unsigned_role=UNSIGNED)
        for sql in (
            "create table u (id bigint primary key, a int default 5, b text, unique (b))",
            "create role guest; create role ann",
            "grant all on t, u to guest, ann",
        ):
            self.settle({"sql": sql})
        database = self.stage.cluster.topics.database
        self.signers = [signer(KEYS, database), signer(OTHERS, database)]
        self.signers += [signer(OF_ROLE, database, "ann"), signer(RequestKeys(), database)]

    def give(self, given: Sent) -> None:
        cluster = self.stage.cluster
        name = f"{cluster.topics.database}.{given.topic}"
        headers = {} if given.content_type is None else {"content-type": given.content_type}
        cluster.bus.append(name, 0, b"", given.body, headers)
        if given.pause_ms:
            self.stage.passing(given.pause_ms)


def bad_request(chance: random.Random, database: RequestDatabase) -> Sent:
    fields = deepcopy(_fields(chance, database))  # what it is made of is used again
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        _spoil(chance, fields)
    media_type, body = _packed(chance, fields)
    if chance.random() < 0.25:
        of_json = media_type == "application/json"
        body = (json_spoiled if of_json and chance.random() < 0.5 else one_byte_spoiled)(
            chance, body
        )
    if chance.random() < 0.03:
        body = chance.choice((body[: len(body) // 2], body * 2, b"", b"\xff", b"[" * 5_000, b"{}"))
    topic = "backfill" if chance.random() < 0.02 else "requests"
    role = chance.choice(("", "", "ann", "guest", "nobody", "漢"))
    content_type: str | None = chance.choice(database.signers)("requests", role, media_type, body)
    assert content_type is not None
    match chance.randrange(30):
        case 0:
            content_type = None
        case 1:
            content_type = chance.choice(
                ("", "text/plain", "application/msgpack", "; role", "a" * 500)
            )
        case 2:
            at = chance.randrange(len(content_type) + 1)
            content_type = content_type[:at] + chance.choice(";=%é\0") + content_type[at + 1 :]
        case 3:
            body = one_byte_spoiled(chance, body)  # behind its signature
    return Sent(topic, content_type, body, chance.choice((0, 0, 0, 1, 5)))


def _packed(chance: random.Random, fields: dict[Any, Any]) -> tuple[str, bytes]:
    if chance.random() < 0.5:
        try:
            return pack_fields(fields)
        except Exception:  # noqa: BLE001 - what its maker refuses others send all the same
            pass
    plain = json.dumps({str(k): v for k, v in fields.items()}, default=_shown, ensure_ascii=False)
    return "application/json", plain.encode("utf-8", "surrogatepass")


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return format_request_id(value) if len(value) == 16 else value.hex()
    return str(value)


def _fields(chance: random.Random, database: RequestDatabase) -> dict[Any, Any]:
    """A request that may well be good."""
    made: dict[Any, Any] = {"id": database.stage.cluster.fresh_id(), "reply_to": 0}
    kind = chance.random()
    if kind < 0.5:
        made |= _operation(chance)
    elif kind < 0.65:
        count = 400 if chance.random() < 0.01 else chance.randrange(5)
        made["transaction"] = [_operation(chance) for _ in range(count)]
    elif kind < 0.75:
        made["transaction"] = [_many(chance)]
    elif kind < 0.85:
        made["sql"] = chance.choice(DDL if chance.random() < 0.5 else STATEMENTS)
        if chance.random() < 0.2:
            made["time_zones"] = [chance.choice(("UTC", "Europe/Berlin", "nowhere", "-25:00"))]
    elif kind < 0.92:
        action = chance.choice(("pause", "resume", "cancel", "dismiss", "set"))
        made |= {"job": chance.choice((1, 2, 3, 99, -1)), "action": action}
        if action == "set":
            made[chance.choice(("chunk_rows", "rows_per_second", "x"))] = chance.choice((0, 5, -1))
    else:
        made["barrier"] = chance.choice(([None], [1], [-1], [1, "m1"], [1, "", [0, [], 1]], []))
    for name, values in HEADERS.items():
        if chance.random() < 0.1:
            made[name] = chance.choice(values)
    return made


HEADERS: Final[dict[str, tuple[Any, ...]]] = {
    "on_conflict": ("retry", "fail", "no"),
    "attempt": (1, 2, 9, 1_000_000, 0, -1),
    "give_up": (True, False, 1),
    "used": ({"t": 1}, {"t": 99}, {"x": -1}, {1: 1}),
    "reads": ([], [1, []], [5, [["t", [], [], []]]], [-1, [[1, [[1]], [], []]]]),
    "as_role": ("ann", "guest", "nobody", ""),
    "reply_to": (0, 1, 9_999, 10_000, -1),
    "schema_version": (1, 99, 0),
    "clock": ("reset",),
}


def _operation(chance: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {
        "table": chance.choice(("t", "u", "u", "x1")),
        "op": chance.choice(("insert", "update", "update", "delete", "upsert")),
        "key": chance.choice(({"id": chance.randrange(9)}, [chance.randrange(9)], {})),
    }
    if made["op"] != "delete":
        made["values"] = {chance.choice(("a", "a", "b")): chance.choice(VALUES)}
    if chance.random() < 0.3:
        made["expect"] = chance.choice((0, 1, 2**62, {"row": 1}, {"x": 0}))
    if chance.random() < 0.1:
        made["arbiters"] = chance.choice(([], ["u_b_key"], ["x"], [1]))
    return made


def _many(chance: random.Random) -> dict[str, Any]:
    rows = [[chance.randrange(50), chance.choice(VALUES)] for _ in range(chance.randrange(30))]
    if chance.random() < 0.3:
        return {"table": "u", "op": "delete", "columns": ["id"], "keys": [[r[0]] for r in rows]}
    return {"table": "u", "op": "insert", "columns": ["id", "a"], "rows": rows}


def _spoil(chance: random.Random, fields: dict[Any, Any]) -> None:
    """Change something at some depth."""
    here: Any = fields
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        key = chance.choice(keys)
        inner = here[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.7:
            here = inner
            continue
        match chance.randrange(5):
            case 0:
                del here[key]
            case 1 if isinstance(here, dict):
                here[chance.choice(NAMES)] = here.pop(key)
            case 2:
                here[key] = [inner] * chance.choice((1, 2, 40))
            case 3:
                here[key] = {chance.choice(NAMES): inner}
            case _:
                here[key] = deepcopy(chance.choice(VALUES if chance.random() < 0.5 else ODD))
        return
