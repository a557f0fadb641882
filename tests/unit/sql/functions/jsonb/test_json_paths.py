"""The paths of jsonb's functions and operators, which are texts of arrays."""

from __future__ import annotations

import pytest

from leasehold.model.errors import FeatureNotSupported, InvalidText
from leasehold.sql.functions.jsonb.functions import path_of


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("{}", ()),
        ("{a, 1 ,b c}", ("a", "1", "b c")),
        ('{"a,b", NULL, "NULL"}', ("a,b", None, "NULL")),
        (r"{a\,b,c\ }", ("a,b", "c ")),
    ],
)
def test_a_path_is_read_as_an_array_of_texts(text: str, steps: tuple[str | None, ...]) -> None:
    assert path_of(text) == steps


@pytest.mark.parametrize("text", ["a", "{a", '{"a}', "{a,}", 'a"b', '{"a"b}', "{a\\}"])
def test_a_malformed_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        path_of(text)


def test_a_path_has_one_dimension() -> None:
    with pytest.raises(FeatureNotSupported):
        path_of("{{a}}")
