"""A session's search path: where the names that its statements say without a schema are looked up.

A statement is looked up when it is prepared, and one that was prepared before again each time that
it runs: what a name means may have changed since, or the path.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.catalog.access import Access
from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import PG_CATALOG, PUBLIC, SCHEMAS
from leasehold.catalog.search_path import (
    SETTING,
    RelationNames,
    find_schemas,
    is_public_alone,
    list_relation_names,
)
from leasehold.model.errors import Refused
from leasehold.sql.session.search_path import FindSchema, Qualified, qualify
from leasehold.sql.session.text import read_text, shifted
from leasehold.sql.syntax.session_statements import (
    CopyIn,
    CopyOut,
    CreateTableAs,
    DeclareCursor,
    Insertion,
    RowStatement,
    SchemaStatement,
    SessionStatement,
    SetConstraints,
)
from leasehold.sql.system_catalog.names import SYSTEM_OIDS
from leasehold.sql_session.session_state import SessionState
from leasehold.sql_session.transaction_runner import TransactionRunner

KEPT_MAX: Final = 200
KEPT_CHARACTERS_MAX: Final = 16 * 1024
"""Of a text that is kept with what it was said as."""
_READ_AS_TEXT: Final = (RowStatement, DeclareCursor)
"""What of these was read is the same with schemas in the text."""
_READ_AGAIN: Final = (SchemaStatement, CopyIn, CopyOut, CreateTableAs, SetConstraints)
_WITH_NAMES: Final = (*_READ_AS_TEXT, *_READ_AGAIN)


class SearchPath:
    """The search path of one session."""

    def __init__(self, state: SessionState, transactions: TransactionRunner) -> None:
        self._state, self._transactions = state, transactions
        self._text, self._user = "", ""
        self._access: Access | None = None
        self._schemas: tuple[str, ...] = ()
        self._is_public_alone = True
        self._names: RelationNames | None = None
        self._kept: OrderedDict[tuple[SessionStatement, str], SessionStatement] = OrderedDict()

    @property
    def schemas(self) -> tuple[str, ...]:
        """Return the schemas that are there, in their order."""
        self._follow()
        return self._schemas

    @property
    def is_public_alone(self) -> bool:
        """Return whether names mean what they mean to whoever knows of no path."""
        self._follow()
        return self._is_public_alone

    def _follow(self) -> None:
        """Find the schemas anew where what they follow from is another one."""
        settings, access = self._state.settings, self._transactions.access
        text, user = settings.values[SETTING], settings.caller.user
        if access is self._access and text == self._text and user == self._user:
            return
        self._schemas = find_schemas(text, user, access, settings.caller.role_id)
        self._is_public_alone = is_public_alone(self._schemas)
        self._text, self._user, self._access = text, user, access

    def is_asked(self, statement: SessionStatement) -> bool:
        """Return whether what a statement names, as its client has said it, rests on the path."""
        self._follow()
        if self._is_public_alone or statement.said is not None:
            return False  # nearly always: each statement that runs asks
        return isinstance(statement.meaning, _WITH_NAMES)

    def look_up(self, statement: SessionStatement) -> SessionStatement:
        """Return a statement with the schemas of what it names. Raises UnknownSchema (3F000),
        NotCoherent, WouldBlock."""
        try:
            found = self._qualify(statement.text)
        except Refused as error:
            raise shifted(error, statement.offset) from None
        place = statement, found.text
        kept = self._kept.get(place)
        if kept is None:
            kept = _with_schemas(statement, found)
            if len(statement.text) <= KEPT_CHARACTERS_MAX:
                self._kept[place] = kept
                while len(self._kept) > KEPT_MAX:
                    self._kept.popitem(last=False)
        return kept

    def look_up_text(
        self, text: str, statements: Sequence[SessionStatement]
    ) -> tuple[str, tuple[SessionStatement, ...]]:
        """Return a text of several statements with the schemas of what they name, and these: what
        one makes those behind it find. Raises what `look_up` raises."""
        found = self._qualify(text)
        if not found.insertions:
            return text, tuple(statements)
        with_schemas = (
            replace(each, said=said, insertions=found.insertions, called=found.called)
            for each, said in zip(read_text(found.text), statements, strict=True)
        )
        return found.text, tuple(with_schemas)

    # ------------------------------------------------------------ names

    def _qualify(self, text: str) -> Qualified:
        schemas = self.schemas
        made_in = next((each for each in schemas if each != PG_CATALOG), None)
        return qualify(text, self._finder(schemas), made_in)

    def _finder(self, schemas: tuple[str, ...]) -> FindSchema:
        """Return what finds the schema of a name. Catalogs are read once a name asks for them."""
        names: RelationNames | None = None

        def find(name: str, is_type: bool) -> str | None:
            nonlocal names
            if is_type:
                known = self._transactions.access.enums_by_name
                prefixes = (("" if each == PUBLIC else each, each) for each in schemas)
                there = (each for prefix, each in prefixes if qualified(prefix, name) in known)
                return next(there, None)
            if (PG_CATALOG, name) in SYSTEM_OIDS:
                return ""
            if names is None:
                names = self._relation_names()
            if name in names.temporary:
                return ""
            for schema in schemas:
                prefix = "" if schema == PUBLIC else schema
                if schema in SCHEMAS and (schema, name) in SYSTEM_OIDS:
                    return schema
                if qualified(prefix, name) in names.shared:
                    return schema
            return None

        return find

    def _relation_names(self) -> RelationNames:
        """Return the names of all relations that the next statement sees."""
        current = self._transactions.replayable()
        if current is None and not self._state.is_idle:
            current = self._transactions.transaction()
        if current is not None:
            self._names = current.relation_names(self._names)
            return self._names
        self._transactions.maker.wait_coherent()
        with self._state.node.single_read().snapshot() as snapshot:
            assert isinstance(snapshot, SqliteSnapshot), "what is newest, in this process"
            temporary = self._state.temporary.schema
            seen = snapshot.catalog, None, temporary
            if self._names is None or not self._names.is_of(seen):
                tables = [*snapshot.tables(), *temporary.made.values()]
                self._names = list_relation_names(seen, tables, snapshot.catalog.access)
            return self._names


def _with_schemas(statement: SessionStatement, found: Qualified) -> SessionStatement:
    """Return a statement as what was found says it, read again where what was read has names."""
    if not found.insertions:
        return statement
    meaning = statement.meaning
    if not isinstance(meaning, _READ_AS_TEXT):
        meaning = read_text(found.text)[0].meaning
    insertions = tuple(
        Insertion(statement.offset + each.position, each.length) for each in found.insertions
    )
    return replace(
        statement,
        text=found.text,
        meaning=meaning,
        said=statement,
        insertions=insertions,
        called=found.called,
    )
