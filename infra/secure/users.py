"""The users of a cluster in secure mode, and the kinds of processes that they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from infra.deployment import OPTIONAL, SERVICES, TOPICS
from leasehold.model.process_rights import KIND_NAMED, RedisRules

Users = Mapping[str, Sequence[str]]
OPERATOR: Final = "operator"
PEOPLE: Final[Users] = {
    TOPICS: ("topics",),
    OPERATOR: ("topics", "operator", "check", "doctor", "audit", "producer", "feeds", "backup"),
    "demo": ("operator", "check", "producer", "subscriber", "replicant"),
    "producers": ("producer",),
    "embedded": ("replicant", "producer"),
}
"""Users that are no services. A command that nobody is named for is the operator's."""
USERS: Final[Users] = {
    **{service.name: (service.rights,) for service in (*SERVICES, *OPTIONAL)},
    **PEOPLE,
}
PROBE: Final = "probe"
"""A user of Redis who may ask whether it is there."""
REPLICATION: Final = "replication"
"""The user of Redis as whom a replica comes to its master."""
SENTINELS: Final = "sentinels"
"""The user of Redis as whom Sentinels come to servers, and whose password Sentinels ask for."""
OF_SERVERS: Final = (
    (REPLICATION, RedisRules(("+psync", "+replconf", "+ping"), ())),
    (
        SENTINELS,
        RedisRules(
            (
                *("&__sentinel__:hello", "+multi", "+exec", "+replicaof", "+slaveof", "+ping"),
                *("+subscribe", "+publish", "+config|rewrite", "+role", "+info", "+script|kill"),
                *("+client|setname", "+client|kill"),
            ),
            (),
        ),
    ),
)
"""What those may do that look after a Redis with a replica."""
ADMINISTRATOR: Final = "administrator"
"""The common name of who may do everything on the broker, and of the broker itself."""
SQL_USER: Final = "leasehold"


def redis_rules(users: Users, database: str) -> Iterator[tuple[str, RedisRules]]:
    """Return who of the users needs Redis, and what each may do there with the database."""
    yield PROBE, RedisRules(("+ping", "+info"), ())
    for name, kinds in users.items():
        rules = [KIND_NAMED[kind].redis_rules(database) for kind in kinds]
        needed = [each for each in rules if each is not None]
        if needed:
            selectors = dict.fromkeys(each for rule in needed for each in rule.selectors)
            yield name, needed[0]._replace(selectors=tuple(selectors))
