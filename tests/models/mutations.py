"""Which switches the models, stories and the simulation turn off, each with the harm it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.isolation import test_at_commit_rules as at_commit
from tests.isolation import test_rules as isolation
from tests.isolation import test_sql_list_append as row_locks
from tests.isolation import test_sql_sequences as sequences
from tests.isolation import test_sql_upserts as upserts
from tests.models import (
    test_model_lease,
    test_model_log,
    test_model_requests,
    test_model_whole,
)
from tests.models.switches import Switch, off
from tests.schema_change import (
    test_locks,
    test_mutations,
    test_numbered,
    test_primary_key,
    test_referred_key,
)
from tests.schema_change import test_rules as schema_change
from tests.simulation import test_rules as simulation
from tests.unit.lease import test_rules as stories
from tests.unit.schema_change import test_coordinator, test_sliced_verification
from tests.unit.transaction import test_moves

SET_BY_MODEL: Final = {"acts_early": Switch("transaction", "actions_when_enforced")}
"""What a switch of the model of schema changes turns off in the library's own code."""


class Mutation(NamedTuple):
    """`off` together; `where` the harm is found."""

    off: frozenset[Switch]
    where: str


def found() -> Iterator[Mutation]:
    """Of each the harm is demanded by a test, which puts a line into the summary."""
    for _, _, log_rules, _, _ in test_model_log.BROKEN:
        yield Mutation(off(log_rules), "model of the log")
    for _, request_rules, _, _ in test_model_requests.BROKEN:
        yield Mutation(off(request_rules), "model of requests that are told")
    for _, lease_rules, _, _ in test_model_lease.BROKEN:
        yield Mutation(off(lease_rules), "model of the leases")
    for _, whole_rules, _, _ in test_model_whole.BROKEN:
        yield Mutation(off(whole_rules), "model of all parts")
    yield Mutation(off(test_model_whole.STUCK), "model of all parts")
    for broken in (*schema_change.BROKEN, *schema_change.IN_SLICES):
        names = frozenset(Switch("schema_change", name) for name in broken.off)
        library = frozenset(SET_BY_MODEL[name] for name in broken.off if name in SET_BY_MODEL)
        yield Mutation(names | library, "model of the schema changes")
    for order in test_mutations.ORDERS:
        yield Mutation(frozenset({Switch("order", order.words)}), "model of the schema changes")
    for mirror_rules in test_primary_key.RULES.values():
        yield Mutation(off(mirror_rules), "model of another primary key")
    for order_of_key in test_primary_key.UNSAFE:
        yield Mutation(frozenset({Switch("order", order_of_key)}), "model of the primary key")
    for _, number_rules in test_numbered.RULES.values():
        yield Mutation(off(number_rules), "model of the sequences")
    for order_of_numbers in test_numbered.UNSAFE:
        yield Mutation(frozenset({Switch("order", order_of_numbers)}), "model of the sequences")
    for key_rules in test_referred_key.RULES.values():
        yield Mutation(off(key_rules), "model of a key that is referred to")
    for order_of_reference in test_referred_key.UNSAFE:
        switch = Switch("order", order_of_reference)
        yield Mutation(frozenset({switch}), "model of a key that is referred to")
    for name in test_locks.OFF:
        yield Mutation(frozenset({Switch("locks", name)}), "model of the locks")
    for _, _, _, rules in simulation.OFF:
        yield Mutation(off(rules), "simulation")
    yield Mutation(off(simulation.FORGETS), "simulation")
    for case in isolation.OFF:
        yield Mutation(off(case.rules), "stories of transactions")
    for computed in at_commit.OFF:
        yield Mutation(off(computed.rules), "stories of transactions")
    for numbered in sequences.OFF:
        yield Mutation(off(numbered.rules), "stories of transactions")
    yield Mutation(off(upserts.OFF), "stories of transactions")
    for rule in (*row_locks.LOCK_RULES, *row_locks.WRITE_RULES):
        yield Mutation(frozenset({Switch("transaction", rule)}), "histories under a row lock")
    for name in test_moves.OFF:
        yield Mutation(frozenset({Switch("transaction", name)}), "story of a move")
    for story in stories.STORIES:
        yield Mutation(frozenset({Switch("lease", story.__name__)}), "stories of the leases")
    for switched, *_ in (*test_coordinator.OFF, *test_sliced_verification.OFF):
        yield Mutation(frozenset({Switch("schema", str(switched))}), "schedules of a job")


def harmless() -> Iterator[Mutation]:
    """Turned off alone they do no harm: another rule stands in."""
    for rules, _ in test_model_whole.BACKED:
        yield Mutation(off(rules), "model of all parts")
    for _, other in simulation.BACKED:
        yield Mutation(off(other), "simulation")
