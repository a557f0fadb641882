"""The schema changes of a transaction block: collected, planned as the master will plan them, and
sent with its rows at COMMIT.

A block takes what is whole at its commit: tables that it makes, all that is said of those, and of
tables that were there what no row can keep from its end. What may fail when COMMIT has been
answered is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from leasehold.catalog.access import Access
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.model import byte_limits
from leasehold.model.errors import FeatureNotSupported, RequestTooLarge
from leasehold.model.ports import StoredCatalog
from leasehold.schema_change.plan.answers import Told, read_all_told
from leasehold.schema_change.plan.joined_jobs import find_risk
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import (
    STATEMENTS_MAX,
    parse_statements,
)
from leasehold.sql.functions.system.session import caller_of
from leasehold.sql.syntax.statements import DropTable, Explain
from leasehold.values.time_zone import UTC, zone_at

TEXT_BYTES_MAX: Final = byte_limits.BLOCK_STATEMENTS
"""The rest of a request's text is for TRUNCATE."""


@dataclass(frozen=True, slots=True)
class BlockSchema:
    """The schema as a block has changed it: a value, which a savepoint keeps. `texts`: the
    statements that the request will hold; `zones`: the time zone in which each was said, () = all
    in UTC. `script`: what they come to, on the catalog of the block's first one, with provisional
    ids for its tables; None before that. `count`: statements in all."""

    texts: tuple[str, ...] = ()
    script: StatementBatch | None = None
    count: int = 0
    zones: tuple[str, ...] = ()

    @property
    def made(self) -> Mapping[str, Descriptor]:
        """Tables of this block, by name."""
        return {} if self.script is None else {t.name: t for t in self.script.made.values()}

    @property
    def dropped(self) -> Mapping[str, Descriptor]:
        """Tables that were there and are gone for this block, by name, which another one of this
        block may have now."""
        dropped = () if self.script is None else self.script.dropped.values()
        return {name: table for table in dropped for name in table.names}

    @property
    def altered(self) -> Mapping[int, Descriptor]:
        """Tables that were there as this block leaves them, by id."""
        return {} if self.script is None else self.script.altered

    @property
    def closed(self) -> frozenset[str]:
        """The names of tables whose rows are read and written otherwise than before."""
        if self.script is None:
            return frozenset()
        there = self.script.catalog.newest
        changed = (t for t in self.altered.values() if _row_shape(t) != _row_shape(there(t.table_id)))
        return frozenset(name for t in changed for name in (t.name, there(t.table_id).name))

    @property
    def access(self) -> Access | None:
        """Return who may do what, with what the block has made and granted; None: as it is
        committed."""
        return None if self.script is None else self.script.catalog.access

    @property
    def begins_jobs(self) -> bool:
        """Whether something goes on after its commit."""
        script = self.script
        return script is not None and (script.drops_something or bool(script.plans))

    def gone_with(self, schema: BlockSchema) -> list[Descriptor]:
        """Return tables that there are here and not any more in `schema`, which comes after
        this."""
        mine = {t.table_id for t in self.dropped.values()}
        kept = {t.table_id for t in schema.made.values()}
        dropped = [t for t in schema.dropped.values() if t.table_id not in mine]
        return dropped + [t for t in self.made.values() if t.table_id not in kept]

    def begun_by(self, schema: BlockSchema) -> set[int]:
        """Return sequences that begin in `schema`, which comes after this, and not here."""
        before = {} if self.script is None else self.script.begun
        after = {} if schema.script is None else schema.script.begun
        return {each for each, begun in after.items() if before.get(each) != begun}

    def without_drops(self, table: Descriptor) -> Descriptor:
        """Return a table that was there as this block sees it."""
        table = self.altered.get(table.table_id, table)
        return table if self.script is None else self.script.without_drops(table)

    def with_change(
        self, text: str, stored: Callable[[], StoredCatalog], context: CommitContext
    ) -> tuple[BlockSchema, list[Told]]:
        """Return it with what `text` asks for, and what is told of that. Raises what
        `StatementBatch.take` raises, FeatureNotSupported, RequestTooLarge (54000)."""
        if self.script is None:
            actor = caller_of(context).role_id
            script = StatementBatch.on(_catalog(stored()), provisional=True, actor=actor)
        else:
            script = self.script.copy()
        texts, drops = [*self.texts], []
        notices: list[Told] = []
        zone = zone_at(context).key
        said = parse_statements(text, () if zone == UTC.key else (zone,))
        for statement, sql in said:
            assert not isinstance(statement, Explain), "that changes nothing"
            answer = script.take(statement, sql, b"", context, lambda _: -1)
            _refuse_risky(script, sql)
            notices += read_all_told(answer)
            if isinstance(statement, DropTable) and answer.keys() != {"notice"}:
                # Of those that one text drops some may not be there.
                drops.append(statement)
            elif answer.keys() != {"notice"}:
                texts.append(sql)
        if drops:
            names = ", ".join(quoted(each.name) for each in drops)
            texts.append(f"DROP TABLE {names}{' CASCADE' if drops[0].cascade else ''}")
        count = self.count + len(said)
        if count >= STATEMENTS_MAX or _bytes(texts) > TEXT_BYTES_MAX:
            raise RequestTooLarge(
                f"a transaction block has at most {STATEMENTS_MAX - 1} schema changes, of"
                f" {TEXT_BYTES_MAX} bytes in all: COMMIT more often"
            )
        zones = self.zones or (UTC.key,) * len(self.texts)
        zones += (zone,) * (len(texts) - len(zones))
        zones = () if {UTC.key}.issuperset(zones) else zones
        return BlockSchema(tuple(texts), script, count, zones), notices


def _catalog(stored: StoredCatalog) -> Catalog:
    return Catalog.load(
        stored.descriptors,
        dict(stored.min_versions),
        stored.jobs,
        stored.ledger_run,
        stored.access,
        stored.next_role_id,
    )


def _bytes(texts: Sequence[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def _refuse_risky(script: StatementBatch, text: str) -> None:
    """Refuse a job that rows may keep from its end: the block would be committed without it."""
    for planned in script.plans.values():
        risk = find_risk(planned)
        if risk:
            raise FeatureNotSupported(
                f"table {planned.job.table!r} was there before this transaction, and rows of it may"
                f" be such that {risk} can't be made, after the transaction is committed",
                hint=f"Move it out of the transaction, behind its COMMIT: {text:.200}",
                table=planned.job.table,
            )


def _row_shape(table: Descriptor) -> tuple[object, ...]:
    """Return all of a table by which statements read and write its rows."""
    columns = tuple((c.name, c) for c in table.by_name.values())
    uniques = frozenset(i.element_id for i in table.indexes if i.refuses_duplicates or i.unique)
    return table.name, columns, uniques, table.checks, table.foreign_keys
