"""A node that applies the log computes entries, and nothing that happens inside ends it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.job import Status
from leasehold.model.errors import InternalFailure, Refused, TooLong
from leasehold.rows.index_entries import entry_of, exact_entry
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.expressions import expression
from leasehold.sql.expressions.compiler import Compiler
from leasehold.sql.expressions.default import compile_default
from leasehold.sql.expressions.expression import compile_condition, compile_expression
from leasehold.sql.syntax.statements import (
    CreateTable,
    Explain,
)
from leasehold.values import jsonb
from leasehold.values.types import Type
from tests.support.schema_change.made_statements import catalog_with, run_to_end

LIBS = Path(__file__).resolve().parents[3] / "libs" / "leasehold"
TABLE = "create table t (id bigint primary key, b text, j jsonb, raw bytea)"
ID, B, J, RAW = 1, 2, 3, 4
DEFECTS = (KeyError("x"), RecursionError("deep"), ZeroDivisionError(), ValueError("4300 digits"))


def indexed(index: str) -> tuple[Descriptor, Index]:
    table = parse_ddl(TABLE)
    assert isinstance(table, CreateTable)
    catalog: Catalog = catalog_with(table)
    change = parse_ddl(f"create index i on t {index}")
    assert not isinstance(change, Explain)
    assert run_to_end(change, catalog).status is Status.SUCCEEDED
    descriptor = catalog.newest(1)
    (made,) = descriptor.indexes
    return descriptor, made


def raising(error: Exception) -> Callable[..., Any]:
    def compute(*_: Any) -> Any:
        raise error

    return compute


@pytest.mark.parametrize("error", DEFECTS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("index", ["((j ->> 'a'))", "(b) where j ? 'a'"])
def test_a_row_on_which_a_function_fails_inside_has_no_entry(
    index: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a defect of one function is a refusal on the master and no entry on all nodes."""
    descriptor, made = indexed(index)
    image = {ID: 1, B: "x", J: '{"a": 1}'}
    exact, entry = exact_entry(descriptor, made), entry_of(descriptor, made)
    decoder = type("Decoder", (), {"decode": staticmethod(raising(error))})
    monkeypatch.setattr(jsonb, "_decoder", decoder)
    if isinstance(error, ValueError | RecursionError):  # which `value_of` has an answer for
        monkeypatch.setattr(jsonb, "charge_size", raising(error))
    with pytest.raises(InternalFailure):
        exact(image)
    assert entry(image) is None


@pytest.mark.parametrize("error", [*DEFECTS, Refused("no such function here")], ids=repr)
def test_of_an_expression_that_cant_be_compiled_no_row_has_an_entry(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: a node that follows compiles, too, while it applies the log."""
    descriptor, made = indexed("(lower(b))")
    monkeypatch.setattr(expression, "_kept", {})
    monkeypatch.setattr(expression, "convert", raising(error))
    monkeypatch.setattr(Compiler, "part", raising(error))
    with pytest.raises(Refused):
        exact_entry(descriptor, made)
    assert entry_of(descriptor, made)({ID: 1, B: "x"}) is None


def called_from(levels: int, call: Callable[[], Any]) -> Any:
    return call() if levels == 0 else called_from(levels - 1, call)


@pytest.mark.parametrize("levels", [0, 500, 900])
def test_an_entry_does_not_depend_on_how_deep_the_node_is_in_calls(levels: int) -> None:
    """Goal: of two nodes none says "nested too deeply" where the other one finds an entry."""
    text = "b"
    for _ in range(40):
        text = f"coalesce(nullif({text}, 'x'), case when id > 0 then b end)"
    descriptor, made = indexed(f"((j ->> 'a'), ({text}))")
    image = {ID: 1, B: "y", J: '{"a": ' + "[" * 498 + "]" * 498 + "}"}
    found = called_from(levels, lambda: entry_of(descriptor, made)(image))
    assert found is not None
    assert found == entry_of(descriptor, made)(image)
    descriptor, made = indexed("(id) where j @> j")
    assert called_from(levels, lambda: entry_of(descriptor, made)(image)) == (1,)


def test_a_value_that_is_longer_than_a_row_may_have_is_refused() -> None:
    """Goal: no node keeps an entry or a column's value beyond the limit of values."""
    descriptor, made = indexed("((raw::text))")
    with pytest.raises(TooLong):
        exact_entry(descriptor, made)({ID: 1, RAW: b"x" * 200_000})
    assert entry_of(descriptor, made)({ID: 1, RAW: b"x" * 200_000}) is None
    assert entry_of(descriptor, made)({ID: 1, RAW: b"x"}) == ("\\x78",)


@pytest.mark.parametrize("error", DEFECTS, ids=lambda e: type(e).__name__)
def test_whatever_is_kept_is_computed_by_the_one_wrapper(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: conditions, generated columns and defaults have no way around it."""
    descriptor, _ = indexed("(b)")
    monkeypatch.setattr(Compiler, "part", lambda *_: Compiler)
    for module in ("expression", "default"):
        for name in ("convert", "assign"):
            place = f"leasehold.sql.expressions.{module}.{name}"
            monkeypatch.setattr(place, lambda *_: raising(error), raising=False)
    monkeypatch.setattr(Compiler, "kind", None, raising=False)
    target = descriptor.column("b")
    for compute in (
        compile_expression(f"b || '{error!r:.3}'", descriptor, target),
        compile_expression(f"b || '{error!r:.3}'", descriptor),
        compile_condition(f"b = '{error!r:.3}'", descriptor),
    ):
        with pytest.raises(InternalFailure):
            compute({ID: 1, B: "x"})
    default = compile_default(f"now()::text || '{error!r:.3}'", Type("text"))
    with pytest.raises(InternalFailure):
        default(_context(), 1, 2, (1,))


def _context() -> Any:
    from leasehold.catalog.elements import CommitContext

    return CommitContext(0, b"seed")


def _is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def test_nobody_but_the_wrapper_compiles_expressions() -> None:
    """Goal: who computes an expression over a row has it of `compile_expression`,
    `compile_condition` or `compile_default`, each of which is wrapped (above)."""
    compiling = set()
    for path in LIBS.rglob("*.py"):
        module = ast.parse(path.read_text())
        # Who names it for the types alone compiles nothing by it.
        typed = (n for n in module.body if isinstance(n, ast.If) and _is_for_types(n.test))
        for_types = {id(node) for block in typed for node in ast.walk(block)}
        for node in ast.walk(module):
            if id(node) in for_types:
                continue
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = {alias.name for alias in node.names}
                if node.module == "leasehold.sql.expressions.compiler" and "Compiler" in names:
                    compiling.add(path.relative_to(LIBS).as_posix())
    assert compiling == {"sql/expressions/expression.py", "sql/expressions/default.py"}


def test_there_is_room_for_calls() -> None:
    assert sys.getrecursionlimit() >= 4_000
