"""Every ⚠ rule of the design's two documents, with its switches, or why it has none yet.

Where the harm of a switch is found is not written here: `mutations.py` gathers it from the tests.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.models.switches import Switch


class Rule(NamedTuple):
    """`number` of the protocol, or a word where schema change has none. `unbuilt`: why there is
    nothing to switch off, "" where there is."""

    number: str
    words: str
    switches: frozenset[Switch] = frozenset()
    unbuilt: str = ""


def of(part: str, *names: str) -> frozenset[Switch]:
    return frozenset(Switch(part, name) for name in names)


PROTOCOL: Final = (
    Rule(
        "L1",
        "a Claim is a compare-and-set; an overtaken one is skipped",
        of("replication", "claim_is_compare_and_set", "reach_the_end_first")
        | of("models", "claim_mismatch_skips"),
    ),
    Rule(
        "L4",
        "a master answers only what it has read back as its own; after an error it claims anew",
        of(
            "replication",
            "incarnation_counts",
            "own_record_by_incarnation",
            "epoch_given_up_after_error",
        )
        | of("models", "own_record_read_back", "own_claim_by_incarnation"),
    ),
    Rule("L5", "the id's own time counts", of("replication", "ids_own_time_counts")),
    Rule(
        "C1",
        "every answer, first or repeated, waits for every coherent node",
        of(
            "replication",
            "repeats_wait_too",
            "lost_node_waits",
            "longest_lease_waits",
            "takeover_waits",
            "earlier_grants_wait",
            "told_by_incarnation",
        ),
    ),
    Rule(
        "C3",
        "a grant counts only for an ask that this incarnation made",
        of("replication", "grant_names_an_ask"),
    ),
    Rule(
        "T0",
        "the master composes the after-image from its own row",
        of("transaction", "master_composes", "genids_are_verified"),
    ),
    Rule(
        "T2",
        "a replay commits only if every answer already sent comes out the same",
        of("transaction", "answers_are_compared", "uncommittable_is_recognised"),
    ),
    Rule(
        "D3",
        "the pinned version is not below min_version in the snapshot the statement reads",
        of("transaction", "pinned_is_checked"),
    ),
    Rule(
        "D5",
        "write fencing is in the log, before v+2 is published",
        of("transaction", "min_version_fences")
        | of("schema", "fence_before_next", "drain_before_fence")
        | of("lease", "publish_needs_fence"),
    ),
    Rule(
        "D6",
        "a ledger of another run id is closed until re-seeded, and for publishing one TTL longer",
        of(
            "lease",
            "seeded_gate",
            "ready_gate",
            "register_two_newest",
            "reseed_sweeps",
            "late_calls_refused",
            "renew_checks_held",
            "grace_waits",
            "grace_in_log",
            "reregister_before_extend",
        ),
    ),
    Rule(
        "D7",
        "a session is dead only by the master's own monotonic clock",
        of("lease", "death_by_own_clock"),
    ),
    Rule(
        "D7",
        "the killing is a compare-and-set on (session, counter)",
        of("lease", "death_is_compare_and_set"),
    ),
)

SCHEMA_CHANGE: Final = (
    Rule(
        "write-only",
        "an update of any column also writes what the row still lacks",
        of("schema_change", "write_missing", "backfill_newer"),
    ),
    Rule(
        "move",
        "an update of primary-key columns carries every pair along",
        of("transaction", "move_carries_all"),
    ),
    Rule(
        "drop required",
        "a required column without default first loses its NOT NULL",
        of("order", "NOT NULL is not dropped first"),
    ),
    Rule(
        "chunks",
        "a chunk names job, element, version and run",
        of("schema_change", "chunk_check") | of("schema", "chunk_names_run"),
    ),
    Rule(
        "chunks",
        "a chunk of column values is an operation like any other, but leaves the genids",
        of("transaction", "backfill_leaves_genids"),
    ),
    Rule(
        "verification",
        "a unique index is compared by distinct keys, too",
        of("order", "filled and enforced, not verified: a duplicate of before")
        | of("schema_change", "verify"),
    ),
    Rule(
        "validation",
        "a constraint is enforced, then every node looks through its own rows for what breaks it",
        of("order", "public without validation", "validated before it is enforced")
        | of("order", "looked through before it is enforced"),
    ),
)

CODE: Final = (
    Rule(
        "C4",
        "a node that leaves serves no more before it returns its lease",
        of("models", "farewell_after_serving"),
    ),
    Rule(
        "L1 L2",
        "of the log a node takes what is told only from a master that has granted it a lease, that"
        " has read it there, and one record after the other",
        of("replication", "granted_first", "in_order") | of("models", "told_when_read"),
    ),
    Rule(
        "L1 L4",
        "what a broker acknowledges counts as read back only where the log has been read up to it",
        of("replication", "next_only"),
    ),
    Rule(
        "C7",
        "a partial replica is waited for until it has applied all up to an answer's record that is"
        " about what this incarnation holds, and of records before it said so everything",
        of(
            "replication",
            "owed_in_order",
            "catalog_is_counted",
            "part_is_its_incarnations",
            "records_of_before_count",
        ),
    ),
    Rule(
        "L5 L7",
        "requests that are told are decided in the order of their requester, who asks for their"
        " answers until they come",
        of("replication", "numbers_in_order", "one_way_at_a_time", "asks_on"),
    ),
    Rule(
        "at commit",
        "what is computed at commit is of a row that nothing else of its transaction rests on, and"
        " that is there",
        of(
            "transaction",
            "read_rows_stay",
            "unseen_updates_stay",
            "row_has_to_be_there",
            "nothing_after_an_error",
        ),
    ),
    Rule(
        "at commit",
        "what can't be computed on the row as it is now runs again, for its client was told that it"
        " could",
        of("transaction", "uncomputable_runs_again"),
    ),
    Rule(
        "at commit",
        "a row that ON CONFLICT did not find when its statement ran is looked for again",
        of("transaction", "arbiters_are_verified"),
    ),
    Rule(
        "Claim 8",
        "columns that move between locks are covered by both, and take along what the old one knew",
        of("locks", "dual", "takes_along", "carries"),
    ),
    Rule(
        "filled",
        "a nullable column with a default is filled for one step before it is public",
        of("order", "public without `filled`"),
    ),
    Rule(
        "slices",
        "a verification in slices: rows first, each from where the one before ended, by the same"
        " nodes, each at one position",
        of(
            "schema",
            "slices_join",
            "rows_before_entries",
            "every_slice_by_all",
            "every_node_is_asked",
            "slices_at_one_position",
            "reports_of_this_slice",
        )
        | of("schema_change", "slices_cover"),
    ),
    Rule(
        "hidden",
        "no constraint is enforced over a column that its version does not show",
        of("order", "CHECK does not wait for its column", "UNIQUE does not wait for its column")
        | of("order", "the column is hidden before its UNIQUE is let go"),
    ),
    Rule(
        "mirrors",
        "while a primary key changes every write goes to both tables, in which a row has the same"
        " genids; in delete-only it takes the row away, whatever it writes",
        of("transaction", "mirror_follows")
        | of("order", "absent, then written", "the old table keeps rows when its writers leave it"),
    ),
    Rule(
        "mirrors",
        "two rows never meet in one of the other table: the new key is unique and not NULL first",
        of("order", "the key is not unique first", "the key may be NULL"),
    ),
)
"""Rules that the documents do not have: found by the models."""

BACKED: Final = {
    Switch("schema", "chunk_names_run"): "the catalog counts nothing of another run either",
}
"""Switches whose harm another rule without a switch prevents; shown to do none when off."""
