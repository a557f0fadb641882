"""The matrix of schema changes: each item × each place of its job × each disturbance.

Scenarios 59 to 62, 75 and 79 are the disturbances; those of an item are named in its file.
`python -m tests.matrix` runs every disturbance at every place; here some take turns.
"""

from __future__ import annotations

import pytest

from tests.matrix.definition import names, read
from tests.matrix.walk import walked
from tests.models.summary import AddLine, ModelLine
from tests.support.by_turns import by_turns

LIKE_ANOTHER = pytest.mark.long("the item that walks the same steps is in make test")


def some_items() -> list[object]:
    """Items by turns; one whose steps are another item's is left to `make test-all`."""
    own = [name for name in names() if not read(name).like]
    like = [name for name in names() if read(name).like]
    return [*by_turns(own), *(pytest.param(name, marks=LIKE_ANOTHER) for name in like)]


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
