"""A whole database that SQL clients talk to by bytes, greeting and authentication included; without
sockets, so that a million messages take minutes, and a failure comes again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from leasehold.adapters.postgres.connection import Admission
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.auth.logins import Method, UserList
from leasehold.pgwire.auth.scram_client import Login
from leasehold.pgwire.auth.scram_server import MECHANISM, MockVerifiers, verifier_of_password
from leasehold.pgwire.auth.startup import (
    Admitted,
    BeginTls,
    Effect,
    Greeting,
    HangUp,
    Say,
    Wait,
    Welcome,
)
from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.phases import Behind, Phase
from leasehold.pgwire.wire_errors import Canceled, UnknownDatabase
from leasehold.sql.planning.plan import Plans
from leasehold.sql.session_settings import SETTINGS, settings_of_options
from leasehold.sql_session.session import SqlSession
from tests.isolation.fuzz.whole_database import WholeDatabase
from tests.support.pgwire.wire_words import fields, message, messages, query, startup, text

PASSWORD: Final = "secret"
USERS: Final = {"me": verifier_of_password(PASSWORD, b"0123456789abcdef", 2)}
NONCE: Final = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
OURS: Final = "rOprNGfwEbeRWgbNEkqO"
DATABASE: Final = "sim"
BEGIN: Final = startup(user="me", database=DATABASE)
STATEMENT_S: Final = 2.0
"""Processor time after which a statement is cancelled, as by statement_timeout."""
LOOK_S: Final = 0.05
DEFECT: Final = "XX000"
KEPT_BYTES_MAX: Final = 1 << 20
LIMITS: Final = Limits()


def scram_parts() -> tuple[bytes, bytes]:
    """What a client says that logs in, where the server's nonce is the one here."""
    mock = MockVerifiers(USERS.values())
    welcome = Welcome(Method.SCRAM, UserList(USERS), mock, NONCE)
    greeting, login = Greeting(welcome, LIMITS), Login(PASSWORD, OURS, [MECHANISM])
    greeting.receive(BEGIN)
    first = login.first().encode()
    one = message(b"p", text(login.mechanism) + len(first).to_bytes(4, "big") + first)
    (said,) = [e.data for e in greeting.receive(one) if isinstance(e, Say)]
    ((_, body),) = messages(said)
    return one, message(b"p", login.proof(body[4:].decode()).encode())


class Talked(NamedTuple):
    """What a client says, in pieces as they come, and how they are taken. `fresh`: on a connection
    of its own; else on the one before. `admitted`: a good greeting has come before it."""

    parts: tuple[bytes, ...]
    node: str = "r1"
    fresh: bool = True
    admitted: bool = True
    asks: bool = False
    hurried: bool = False


class Client:
    """One connection. `said` is kept until it is taken."""

    def __init__(self, database: WireDatabase, node: str, *, asks: bool) -> None:
        self._database = database
        self._node = node
        method = Method.SCRAM if asks else Method.TRUST
        welcome = Welcome(method, UserList(USERS), MockVerifiers(USERS.values()), NONCE)
        self._greeting: Greeting | None = Greeting(welcome, LIMITS)
        self.conversation: Conversation | None = None
        self._said: list[bytes] = []
        self.ended = False

    def take(self) -> bytes:
        said, self._said = b"".join(self._said), []
        return said

    def _say(self, data: bytes) -> Behind | None:
        self._said.append(data)
        if sum(map(len, self._said)) > KEPT_BYTES_MAX:
            self._database.look_at(self.take())
        return None

    def receive(self, data: bytes, *, hurried: bool = False) -> None:
        if self.ended:
            return
        if self._greeting is not None:
            self._greet(self._greeting.receive(data))
            return
        conversation = self.conversation
        assert conversation is not None
        with self._database.limited(conversation):
            waits = conversation.receive(data, hurried=hurried)
            while waits is not None:
                waits = conversation.receive(b"", hurried=False)
        self.ended = conversation.phase is Phase.CLOSED

    def _greet(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Say(data):
                    self._say(data)
                case Wait():
                    assert self._greeting is not None
                    self._greet(self._greeting.resume())
                case BeginTls() | HangUp():
                    self.ended = True
                case Admitted():
                    self._admit(effect)
                case _:
                    pass  # a wish to cancel somebody's statement: it has no key

    def _admit(self, effect: Admitted) -> None:
        self._greeting = None
        admission = Admission(
            effect.user, effect.database, dict(effect.parameters), 7, effect.account
        )
        try:
            session = self._database.open_session(admission, self._node)
        except LeaseholdError:
            self.ended = True
            return
        self.conversation = Conversation(session, self._say, LIMITS, self._database.defect)
        self.conversation.begin(7, b"key!")
        if effect.rest:
            self.receive(effect.rest)

    def close(self) -> None:
        self.ended = True
        if self.conversation is not None:
            self.conversation.close()
            self.conversation = None


class WireDatabase(WholeDatabase):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.defects: list[str] = []
        self._plans = {"r1": Plans(), "r2": Plans()}
        self._limited: tuple[float, Conversation] | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._cancel_late, daemon=True)
        self._watch.start()
        self.client: Client | None = None
        self.messages = 0
        for made in MADE:
            self.ask(made)
        self.stage.passing(500)

    # ------------------------------------------------------------ what is good

    def ask(self, sql: str, node: str = "r1") -> bytes:
        client = Client(self, node, asks=False)
        try:
            client.receive(BEGIN)
            client.take()
            client.receive(query(sql))
            said = client.take()
        finally:
            client.close()
        codes = [fields(body).get("C") for kind, body in messages(said) if kind == "E"]
        assert not codes, f"{sql}: {said!r}"
        return said

    def good(self) -> None:
        """One who logs in writes, and both nodes answer with it."""
        super().good()
        one = Client(self, "r2", asks=True)
        try:
            for part in (BEGIN, *SCRAM):
                one.receive(part)
            one.take()
            self.number += 1
            one.receive(query(f"update good set n = {self.number} where id = 1"))
            said = one.take()
        finally:
            one.close()
        assert b"UPDATE 1\0" in said, said
        for node in ("r1", "r2"):
            said = self.ask("select n from good where id = 1", node)
            assert str(self.number).encode() in said, said
        assert not self.defects, self.defects

    def end(self) -> None:
        self._leave()
        super().end()
        for name in ("r1", "r2"):
            node = self.stage.node(name).node
            assert node is not None
            assert node.agent is not None
            for versions in node.agent.leases.all.values():
                assert all(held.is_idle for held in versions.values()), "a lease is not given back"

    # ------------------------------------------------------------ what is not

    def give(self, given: Talked) -> None:
        if given.fresh or self.client is None or self.client.ended:
            self._leave()
            self.client = Client(self, given.node, asks=given.asks)
            if given.admitted:
                for part in (BEGIN, *(SCRAM if given.asks else ())):
                    self.client.receive(part)
        for part in given.parts:
            self.client.receive(part, hurried=given.hurried)
        self.look_at(self.client.take())

    def look_at(self, said: bytes) -> None:
        """What is said are whole messages, and no error is a defect's."""
        for kind, body in _whole(said):
            self.messages += 1
            if kind == "E":
                code = fields(body).get("C", "")
                assert code != DEFECT, f"{fields(body)} {self.defects}"
                assert len(code) == 5, f"{fields(body)}"

    def _leave(self) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None

    def close(self) -> None:
        self._over.set()
        self._watch.join()
        with suppress(Exception):  # after a failure it may be in any state
            self._leave()
        super().close()

    # ------------------------------------------------------------ for clients

    def open_session(self, admission: Admission, node: str) -> SqlSession:
        """As a listener does."""
        if admission.database != DATABASE:
            raise UnknownDatabase("there is no such database")
        options = settings_of_options(admission.parameters.get("options", ""))
        given = {n: v for n, v in admission.parameters.items() if n.lower() in SETTINGS}
        return SqlSession(
            self.stage.sql_node(node),
            self._plans[node],
            user=admission.user,
            process=admission.process,
            settings={**options, **given},
            role_id=BOOTSTRAP_ROLE,
        )

    def defect(self, error: Exception) -> None:
        tb, at = error.__traceback__, ""
        while tb is not None:
            at = f"{tb.tb_frame.f_code.co_filename}:{tb.tb_lineno}"
            tb = tb.tb_next
        self.defects.append(f"{error!r:.300} at {at}")

    def limited(self, conversation: Conversation) -> Any:
        return _Limited(self, conversation)

    def limit(self, conversation: Conversation | None) -> None:
        with self._lock:
            end_s = time.process_time() + STATEMENT_S
            self._limited = None if conversation is None else (end_s, conversation)

    def _cancel_late(self) -> None:
        while not self._over.wait(LOOK_S):
            with self._lock:
                if self._limited is not None and self._limited[0] < time.process_time():
                    self._limited[1].cancel(Canceled("canceling statement due to timeout"))
                    self._limited = None


class _Limited:
    def __init__(self, database: WireDatabase, conversation: Conversation) -> None:
        self._database, self._conversation = database, conversation

    def __enter__(self) -> None:
        self._database.limit(self._conversation)

    def __exit__(self, *_: object) -> None:
        self._database.limit(None)


def _whole(said: bytes) -> Any:
    """Messages of the server; before them stand the single bytes that answer for encryption."""
    return (
        messages(said.lstrip(b"N")) if said[:1] == b"N" and said[1:2] in b"NREv" else messages(said)
    )


def cut(chance: random.Random, data: bytes) -> tuple[bytes, ...]:
    """The same bytes in pieces, as they may come."""
    if chance.random() < 0.7:
        return (data,)
    parts: list[bytes] = []
    while data and len(parts) < 40:
        size = chance.choice((1, 4, 7, 50, 500))
        parts.append(data[:size])
        data = data[size:]
    return (*parts, data)


SCRAM: Final = scram_parts()
_COLUMNS: Final = (
    *("id int primary key", "a int", "b text", "c numeric(10, 2)", "d date", "e timestamptz"),
    *("f boolean", "g double precision", "h bytea", "i jsonb", "j text", "k varchar(5)"),
)
_ROWS: Final = (
    "(1, 1, 'x', 1.5, '2024-01-01', true, 0.5, '{\"a\": [1, null]}', '{1,2}')",
    "(2, null, null, null, null, null, null, null, null)",
)
MADE: Final = (
    f"create table t2 ({', '.join(_COLUMNS)})",
    f"insert into t2 (id, a, b, c, d, f, g, i, j) values {', '.join(_ROWS)}",
    "create table p (id int primary key, t2_id int references t2, n int check (n < 1000))",
    "create index on t2 (a); create unique index on t2 (b)",
    "create sequence s1",
)
