"""Goal: with the rules of the table each kind of process can do in Redis what it does, and no more.

Method: a Redis of its own, users made as `leasehold setup-acls` makes them. Random commands of the
ledger, and channels, by the user of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from random import Random

import pytest
import redis

from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.adapters.redis.users import RedisUsers, UserRules, digest_of, is_as_wanted
from leasehold.lease.commands import Liveness, Newest, RegisterEpoch, Snapshot
from leasehold.lease.ledger.ledger import LedgerState, apply
from leasehold.model.errors import ConfigurationError, LedgerUnavailable
from leasehold.model.process_rights import KINDS, ProcessKind
from leasehold.settings.environment import RedisSettings
from tests.support.cluster.redis_server import redis_in
from tests.support.lease.random_commands import CommandMaker

DATABASE = "demo"
PASSWORD = "a password of a test"
COMMANDS = 400
LEDGER_KINDS = [kind for kind in KINDS if kind.reads_ledger]
OF_REDIS = [kind for kind in KINDS if kind.redis_rules(DATABASE) is not None]
CHANNELS = ("acks", "log", "requests", "answers")


def user_of(kind: ProcessKind) -> UserRules:
    rules = kind.redis_rules(DATABASE)
    assert rules is not None
    return UserRules(kind.name, (digest_of(PASSWORD),), rules)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisSettings]:
    with redis_in(tmp_path_factory.mktemp("redis")) as made:
        settings = RedisSettings(url=made.url)
        with closing(RedisUsers(settings)) as users:
            for kind in OF_REDIS:
                users.set_user(user_of(kind))
        yield settings


def as_kind(server: RedisSettings, kind: ProcessKind) -> RedisSettings:
    return replace(server, url=server.url.replace("//", f"//{kind.name}@"), password=PASSWORD)


def test_users_are_as_wanted_once_they_are_made(server: RedisSettings) -> None:
    with closing(RedisUsers(server)) as users:
        lines = users.lines()
        assert all(is_as_wanted(lines[kind.name], user_of(kind)) for kind in OF_REDIS)
        assert PASSWORD not in "".join(lines.values())
        assert not users.save()  # it has no aclfile
        with pytest.raises(ConfigurationError, match="refuses ACL SETUSER"):
            users.set_user(user_of(OF_REDIS[0])._replace(passwords=("no digest",)))


@pytest.mark.parametrize("kind", LEDGER_KINDS, ids=lambda kind: kind.name)
def test_the_ledger_works_with_just_these_rules(server: RedisSettings, kind: ProcessKind) -> None:
    with closing(RedisLedger(as_kind(server, kind), DATABASE)) as ledger:
        assert ledger.call(Snapshot())
        assert ledger.call(Newest())
        if kind.changes_ledger:
            maker, state = CommandMaker(Random(7)), LedgerState()
            run_id = ledger.call(Liveness()).run_id
            for _ in range(COMMANDS):
                command = maker.make(state, run_id)
                assert ledger.call(command).run_id == run_id
                apply(state, command, run_id)
        else:
            with pytest.raises(LedgerUnavailable, match=r"no permissions|can't run this command"):
                ledger.call(RegisterEpoch(1 << 40))
    with (
        closing(RedisLedger(as_kind(server, kind), "other")) as ledger,
        pytest.raises(LedgerUnavailable, match=r"no permissions|can't run this command"),
    ):
        ledger.call(Snapshot())


@pytest.mark.parametrize("kind", OF_REDIS, ids=lambda kind: kind.name)
def test_channels_are_open_one_way_to_whom_they_are_for(
    server: RedisSettings, kind: ProcessKind
) -> None:
    settings = as_kind(server, kind)
    with redis.Redis.from_url(settings.url, protocol=2, **settings.client_options()) as client:
        for channel in CHANNELS:
            name = f"leasehold:{{{DATABASE}}}:{channel}:1"
            assert may(client, "PUBLISH", name, "x") == (channel in kind.publishes)
            assert may(client, "SUBSCRIBE", name) == (channel in kind.subscribes)
            assert not may(client, "PUBLISH", name.replace(DATABASE, "other"), "x")
        for words in ("CONFIG GET *", "ACL LIST", "KEYS *", "FLUSHALL", "GET a", "SCRIPT FLUSH"):
            assert not may(client, *words.split())
        assert client.ping()


def may(client: redis.Redis, *words: str) -> bool:
    """Whether Redis takes a command, on a connection of its own."""
    connection = client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
    try:
        connection.send_command(*words)
        connection.read_response()
    except redis.exceptions.NoPermissionError:
        return False
    finally:
        connection.disconnect()
    return True
