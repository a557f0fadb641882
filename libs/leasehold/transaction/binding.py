"""Names and outside values of a row operation → element ids and storage values, per descriptor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Index
from leasehold.catalog.states import DELETED, WRITTEN
from leasehold.model.errors import (
    CheckViolation,
    FeatureNotSupported,
    GeneratedAlways,
    InternalFailure,
    MalformedRequest,
    NotNullViolation,
    Refused,
    UnknownColumn,
)
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.model.records.requests import Expression
from leasehold.rows.check_constraints import condition_of
from leasehold.rows.index_entries import EntryOf, exact_entry
from leasehold.sql.expressions.expression import arguments, compile_expression
from leasehold.values.storage import fit_stored, to_storage

_Checks: TypeAlias = tuple[tuple[Check, Callable[[Image], bool]], ...]
_Computed: TypeAlias = tuple[tuple[Index, EntryOf], ...]


class Given(NamedTuple):
    """What becomes of a value that is given under a name."""

    element_id: int
    convert: Callable[[Any], Any]
    column: Column


def _named(column: Column, error: Refused) -> Refused:
    return type(error)(f"column {column.name!r}: {error.message}", column=column.name)


class Binding:
    """Converters of one descriptor version, made once and used for every request."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor
        self._columns: dict[str | int, Given] = {
            name: Given(column.element_id, to_storage(column.written_type), column)
            for name, column in descriptor.by_name.items()
        }
        self._key = tuple((c.name, to_storage(c.type), c) for c in descriptor.key_columns)
        self._to_key = tuple(convert for _, convert, _ in self._key)
        self._narrow_key = tuple(
            (column, fit_stored(column.written_type))
            for column in descriptor.key_columns
            if column.narrow is not None
        )
        self._key_ids = frozenset(descriptor.primary_key)
        self._columns |= {
            name: Given(column.element_id, to_storage(column.written_type), column)
            for name, column in descriptor.by_alias.items()
        }
        # What the master gives a number while nobody can name it any more
        # (`sequence_operations.value_name_of`).
        self._columns |= {
            column.element_id: Given(column.element_id, to_storage(column.written_type), column)
            for column in descriptor.numbered
        }
        self._checks = tuple((c, condition_of(descriptor, c)) for c in descriptor.enforced_checks)
        self._computed = tuple(
            (i, exact_entry(descriptor, i))
            for i in descriptor.indexes
            if i.computed and i.state in DELETED
        )
        shown = descriptor.public_ids
        self._shown_checks = tuple(c for c in self._checks if shown.issuperset(c[0].columns))
        self._shown_computed = tuple(i for i in self._computed if shown.issuperset(i[0].over))
        self._not_null = tuple(
            (c.element_id, c.name, not c.nullable)
            for c in descriptor.written
            if c.refuses_null or c.element_id in self._key_ids
        )
        self.required_ids = frozenset(element_id for element_id, _, _ in self._not_null)
        """The columns that must have a value in each new row."""
        self.insert_plans: dict[tuple[int, tuple[str, ...]], Any] = {}
        """See `alike_inserts.plan_inserts`."""

    @property
    def computes_nothing(self) -> bool:
        """Whether a new row that has all of its values is as it was given, under the key that it
        was given: nothing is computed of it, nor looked at but its values."""
        table = self.descriptor
        looked_at = self._checks or self._computed or self._narrow_key
        made = table.hidden_key or table.has_derived or table.at_once or table.mirror
        return not (looked_at or made or table.sequence)

    def given(self, name: str) -> Given | None:
        """Return what becomes of a value under that name, None where no writer may give it."""
        return self._columns.get(name)

    def key(self, given: Mapping[str, Any] | Key) -> Key:
        """The primary key in storage form, in key order.

        Raises FeatureNotSupported for a key by name where the table has none, MalformedRequest for
        missing or extra columns, NotNullViolation, and what the type
        raises (WrongType, InvalidText, OutOfRange, TooLong) with the column named.
        """
        if type(given) is not tuple and isinstance(given, Mapping):
            if self.descriptor.hidden_key:
                raise self._no_key()
            if len(given) != len(self._key):
                raise self._bad_key(given)
            try:
                values = tuple(given[name] for name, _, _ in self._key)
            except KeyError:
                raise self._bad_key(given) from None
        else:
            values = tuple(given)
            if len(values) != len(self._key):
                raise self._bad_key(given)
        try:
            if len(values) == 1:
                key: Key = (self._to_key[0](values[0]),)
            else:
                key = tuple([convert(v) for v, convert in zip(values, self._to_key, strict=True)])
        except Refused:
            key = ()
            for value, (_, convert, column) in zip(values, self._key, strict=True):
                self._converted(column, convert, value)
        if None in key:
            column = self._key[key.index(None)][2]
            raise self._null(column.name)
        return key

    def key_prefix(self, given: Key) -> Key:
        """The first columns of a key in storage form, for the bounds of a scan."""
        if len(given) > len(self._key):
            raise self._bad_key(given)
        return tuple(
            self._converted(column, convert, value)
            for value, (_, convert, column) in zip(given, self._key, strict=False)
        )

    def _no_key(self) -> FeatureNotSupported:
        return FeatureNotSupported(
            f"a request can't name a row of table {self.descriptor.name!r}, which has no primary"
            " key: give all of a new row in `values`; change rows by SQL, or add a primary key",
            table=self.descriptor.name,
        )

    def _bad_key(self, given: object) -> MalformedRequest:
        wanted = ", ".join(name for name, _, _ in self._key)
        return MalformedRequest(
            f"the key of table {self.descriptor.name!r} is ({wanted}); got {given!r:.200}",
            table=self.descriptor.name,
        )

    def _null(self, name: str) -> NotNullViolation:
        return NotNullViolation(
            f"null value in column {name!r} of table {self.descriptor.name!r}",
            table=self.descriptor.name,
            column=name,
        )

    def _converted(self, column: Column, convert: Any, value: Any) -> Any:
        try:
            return convert(value)
        except Refused as error:
            raise _named(column, error) from error

    def values(
        self, given: Mapping[Any, Any], row: Image | None, *, keys: bool = False
    ) -> dict[int, Any]:
        """Return the changed columns by element id. `given`: by name, or by the element id of a
        column that has none for readers (`sequence_operations.value_name_of`). Expressions are
        computed over `row` (its image). `keys`: those of the primary key may be among them, as in
        an update, which moves the row then.

        Raises UnknownColumn for names that aren't public columns, MalformedRequest for a key
        column, GeneratedAlways for a generated one, and what types and expressions raise."""
        changed: dict[int, Any] = {}
        columns = self._columns
        for name, value in given.items():
            found = columns.get(name)
            if found is None:
                self.descriptor.column(name)
                raise UnknownColumn(f"column {name!r} does not exist", column=name)
            element_id, convert, column = found
            if column.generated:
                raise GeneratedAlways(
                    f"column {name!r} is GENERATED ALWAYS from others and takes no value:"
                    " leave it out",
                    column=name,
                )
            if element_id in self._key_ids and not keys:
                raise MalformedRequest(
                    f"column {name!r} belongs to the primary key: name it in `key`; an update, and"
                    " nothing else, may name another one in `values`",
                    column=name,
                )
            try:
                if type(value) is Expression:
                    changed[element_id] = self._result(value, column, row or {})
                else:
                    changed[element_id] = convert(value)
            except Refused as error:
                raise _named(column, error) from error
        return changed

    def _result(self, value: Expression, column: Column, row: Image) -> Any:
        """Typed by the column it is for, so the result has storage form and range."""
        compute = compile_expression(
            value.text, self.descriptor, column, kept=False, types=value.types
        )
        return compute({**row, **arguments(value.types, value.args)} if value.args else row)

    def with_key(self, image: Image, key: Key) -> dict[int, Any]:
        """The image of a new row plus its key columns' pairs. Raises what types raise for one that
        can't be written yet: a row that is there may have such a key."""
        full = dict(zip(self.descriptor.primary_key, key, strict=True))
        for column, convert in self._narrow_key:
            self._converted(column, convert, full[column.element_id])
        full.update(image)
        return full

    def moves(self, changed: Image, key: Key) -> bool:
        """Whether the row at `key` comes under another one when these columns change."""
        return not self._key_ids.isdisjoint(changed) and any(
            e in changed and changed[e] != value
            for e, value in zip(self.descriptor.primary_key, key, strict=True)
        )

    def check_key(self, image: Image) -> None:
        """Raises NotNullViolation for a NULL in the primary key."""
        for element_id in self.descriptor.primary_key:
            if image.get(element_id) is None:
                raise self._null(self.descriptor.by_id[element_id].name)

    def check(self, before: Image | None, image: Image) -> None:
        """Raises NotNullViolation for the first column that must have a value and has none, and
        CheckViolation for the first check made false; where an index's entry can't be computed,
        what its expression raises. A constraint that is enforced and not relied on may not hold for
        the row from before, which a change of other columns leaves so."""
        for element_id, name, relied_on in self._not_null:
            if image.get(element_id) is not None:
                continue
            if relied_on or before is None or before.get(element_id) is not None:
                raise self._null(name)
        self._check_conditions(self._checks, before, image)
        self._check_computed(self._computed, before, image)

    def check_shown(self, before: Image | None, image: Image) -> None:
        """Raises what `check` raises, as far as that rests on columns which every reader has. The
        images have no others."""
        self._check_conditions(self._shown_checks, before, image)
        self._check_computed(self._shown_computed, before, image)

    def _check_conditions(self, checks: _Checks, before: Image | None, image: Image) -> None:
        for check, holds in checks:
            if before is not None and all(before.get(e) == image.get(e) for e in check.columns):
                continue
            if not holds(image):
                raise CheckViolation(
                    f"the row of table {self.descriptor.name!r} violates check {check.name!r}",
                    table=self.descriptor.name,
                    constraint=check.name,
                )

    def _check_computed(self, computed: _Computed, before: Image | None, image: Image) -> None:
        for index, entry in computed:
            if before is not None and all(before.get(e) == image.get(e) for e in index.over):
                continue
            try:
                entry(image)
            except Refused as error:
                if index.state not in WRITTEN and not isinstance(error, InternalFailure):
                    continue  # nobody puts it: a value that it can't take is none of its business
                raise type(error)(
                    f"the row of table {self.descriptor.name!r} can't be in index {index.name!r}:"
                    f" {error.message}",
                    **{**error.detail, "table": self.descriptor.name, "index": index.name},
                ) from error


_BINDINGS: dict[tuple[int, int], Binding] = {}
_BINDINGS_MAX = 4_096


def binding(descriptor: Descriptor) -> Binding:
    """The Binding of a descriptor version, kept as long as that very descriptor is in use."""
    name = (descriptor.table_id, descriptor.version)
    found = _BINDINGS.get(name)
    if found is None or found.descriptor is not descriptor:
        if len(_BINDINGS) >= _BINDINGS_MAX:
            _BINDINGS.clear()
        found = _BINDINGS[name] = Binding(descriptor)
    return found
