"""The matrix of schema changes: each item × each place of its job × each disturbance.

Scenarios 59 to 62, 75 and 79 are the disturbances; those of an item are named in its file.
`python -m tests.matrix` runs every disturbance at every place; here some take turns, and `make
test` has an item of each kind.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.matrix.definition import names, read
from tests.matrix.walk import walked
from tests.models.summary import AddLine, ModelLine

IN_MAKE_TEST: Final = frozenset(
    {
        *("add_check", "add_foreign_key_orphans", "create_unique_index", "drop_index"),
        *("add_column", "alter_type", "widen_type", "drop_column_required", "set_default"),
        *("drop_table", "rename_column", "several_actions"),
    }
)
"""Each kind of element comes and goes: filled, converted or as it is, proved, and rolled back."""
OTHERS = pytest.mark.long("half a minute; an item of the same kind is in make test")
LIKE_ANOTHER = pytest.mark.long("the item that walks the same steps is in make test")


def some_items() -> list[object]:
    """Return all items; those that `make test-all` alone walks are marked."""
    own = [name for name in names() if not read(name).like]
    like = [name for name in names() if read(name).like]
    assert set(own) >= IN_MAKE_TEST
    return [
        *(pytest.param(name, marks=() if name in IN_MAKE_TEST else OTHERS) for name in own),
        *(pytest.param(name, marks=LIKE_ANOTHER) for name in like),
    ]


@pytest.mark.parametrize("name", some_items())
def test_every_case_of_an_item(name: str, model_line: AddLine) -> None:
    found = walked(read(name))
    words = f"{len(found.wrong)} wrong" if found.wrong else "no harm"
    model_line(ModelLine(f"matrix: {name}", "-", found.cases, found.cases, True, words))
    told = [
        f'{words}\nreplay with: python -m tests.matrix {name} --case "{case}"'
        for case, words in found.wrong.items()
    ]
    assert not told, f"{len(told)} of {found.cases} cases; the first:\n{told[0]}"
