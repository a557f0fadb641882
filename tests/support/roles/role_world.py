"""A catalog in which roles say schema statements, as the master decides them."""

from __future__ import annotations

from leasehold.catalog.access import Access
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.roles import BOOTSTRAP_ROLE, FIRST_ROLE
from leasehold.model.records.log import CatalogWrite, RoleWrite
from leasehold.schema_change.plan.answers import Told, join_answers, read_all_told
from leasehold.schema_change.plan.plan import NO_CONTEXT
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import (
    Explain,
)


class RoleWorld:
    """The catalog; `superuser`: the name of the first role. Each text is one commit."""

    def __init__(self, superuser: str = FIRST_ROLE.name) -> None:
        self.catalog = Catalog()
        self._lsn = 0
        self._apply((RoleWrite(BOOTSTRAP_ROLE, FIRST_ROLE._replace(name=superuser).to_wire()),))

    @property
    def access(self) -> Access:
        return self.catalog.access

    def id_of(self, role: str) -> int:
        return self.access.roles.named(role).role_id

    def say(self, text: str, role: str = "") -> list[Told]:
        """Carry a text out as `role`, "" = the first; return what is told. Raises Refused."""
        actor = self.id_of(role) if role else BOOTSTRAP_ROLE
        batch = StatementBatch.on(self.catalog, actor=actor)
        answers = []
        for statement, sql in parse_statements(text):
            assert not isinstance(statement, Explain), text
            answers.append(batch.take(statement, sql, b"", NO_CONTEXT, lambda _: 0))
        self._apply(batch.writes)
        return read_all_told(join_answers(tuple(answers)))

    def _apply(self, writes: tuple[CatalogWrite, ...]) -> None:
        self._lsn += 1
        for write in writes:
            self.catalog.apply(write, self._lsn, self._lsn)
