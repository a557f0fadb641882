"""The matrix of schema changes: each item × each place of its job × each disturbance.

Scenarios 59 to 62, 75 and 79 are the disturbances; those of an item are named in its file.
`python -m tests.matrix` runs every disturbance at every place; here some take turns.
"""

from __future__ import annotations

import pytest

from tests.matrix.definition import names, read
from tests.matrix.walk import walked
from tests.models.summary import AddLine, ModelLine

LIKE_ANOTHER = pytest.mark.long("another item that walks the same steps is in make test")


def one_of_each_kind() -> list[object]:
    """All items; of those whose steps are another one's the first alone is in `make test`."""
    items: list[object] = []
    taken = set()
    for name in names():
        like = read(name).like
        items.append(pytest.param(name, marks=LIKE_ANOTHER) if like in taken else name)
        if like:
            taken.add(like)
    return items


@pytest.mark.parametrize("name", one_of_each_kind())
def test_every_case_of_an_item(name: str, model_line: AddLine) -> None:
    found = walked(read(name))
    words = f"{len(found.wrong)} wrong" if found.wrong else "no harm"
    model_line(ModelLine(f"matrix: {name}", "-", found.cases, found.cases, True, words))
    told = [
        f'{words}\nreplay with: python -m tests.matrix {name} --case "{case}"'
        for case, words in found.wrong.items()
    ]
    assert not told, f"{len(told)} of {found.cases} cases; the first:\n{told[0]}"
