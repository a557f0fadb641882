"""Goal: what is stored for a label stays what it is, in the order of the labels, whatever comes."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.catalog.newer_types import find_newer_type
from leasehold.model.errors import (
    DuplicateType,
    InvalidArgument,
    InvalidName,
    InvalidText,
    OutOfRange,
    Refused,
    WrongType,
)
from leasehold.model.features import Feature
from leasehold.model.ids import ENUMS_FROM
from leasehold.pgwire.values.decoding import make_decoder
from leasehold.pgwire.values.encoding import make_encoder
from leasehold.sql.functions.registry import cast_for
from leasehold.values.enums import (
    LABELS_MAX,
    Enumeration,
    add_label,
    make_labels,
    rename_label,
    unresolved,
)
from leasehold.values.oids import enum_oid, oid_of
from leasehold.values.storage import fit_stored, from_storage, to_json, to_storage
from leasehold.values.text_io import from_text, shown_text
from leasehold.values.time_zone import UTC
from leasehold.values.types import (
    Type,
    element_of,
    enum_type,
    holds_all_of,
    type_from_wire,
    type_to_wire,
)

MOOD = Enumeration(ENUMS_FROM + 1, "mood", make_labels(["sad", "ok", "happy"]))
GROWN = add_label(add_label(MOOD, "meh", "ok", before=True), "worst", "sad", before=True)


def test_places_are_in_the_order_of_labels_and_stay() -> None:
    grown = add_label(add_label(GROWN, "last"), "best", "happy")
    texts = [label.text for label in grown.labels]
    assert texts == ["worst", "sad", "meh", "ok", "happy", "best", "last"]
    assert sorted(grown.places) == list(grown.places)
    assert {*MOOD.labels} < {*GROWN.labels} < {*grown.labels}
    renamed = rename_label(grown, "meh", "so so")
    assert renamed.places == grown.places
    assert renamed.text_of(grown.place_of("meh")) == "so so"


def test_between_two_labels_there_is_room_for_a_while() -> None:
    """Goal: when the last number between two is given, that is said, and nothing is touched."""
    grown = MOOD
    for number in range(24):
        grown = add_label(grown, f"n{number}", "sad")
    with pytest.raises(OutOfRange, match="no number is left between labels"):
        add_label(grown, "one more", "sad")
    assert len(add_label(grown, "elsewhere", "happy").labels) == len(grown.labels) + 1


REFUSED: list[tuple[str, Any, type[Refused]]] = [
    ("one label twice", lambda: make_labels(["a", "a"]), DuplicateType),
    ("a long label", lambda: make_labels(["é" * 32]), InvalidName),
    ("many labels", lambda: make_labels([str(n) for n in range(LABELS_MAX + 1)]), OutOfRange),
    ("long labels", lambda: make_labels([f"{n:060}" for n in range(300)]), OutOfRange),
    ("a label that is there", lambda: add_label(MOOD, "ok"), DuplicateType),
    ("beside none", lambda: add_label(MOOD, "x", "nothing"), InvalidArgument),
    ("renaming none", lambda: rename_label(MOOD, "nothing", "x"), InvalidArgument),
    ("renaming to another", lambda: rename_label(MOOD, "ok", "sad"), DuplicateType),
    ("no label", lambda: from_text(enum_type(MOOD), "glad"), InvalidText),
    ("another case", lambda: to_storage(enum_type(MOOD))("OK"), InvalidText),
    ("a place", lambda: to_storage(enum_type(MOOD))(MOOD.place_of("ok")), WrongType),
    ("a later label", lambda: fit_stored(enum_type(MOOD))(GROWN.place_of("meh")), InvalidText),
    (
        "a later label in an array",
        lambda: fit_stored(enum_type(MOOD, array=True))(f"[{GROWN.place_of('meh')}]"),
        InvalidText,
    ),
]


def test_what_is_refused() -> None:
    for words, made, error in REFUSED:
        met: Refused | None = None
        try:
            made()
        except Refused as refused:
            met = refused
        assert type(met) is error, words


def test_a_value_has_every_form() -> None:
    for kind, value, text in (
        (enum_type(MOOD), "ok", "ok"),
        (enum_type(MOOD, array=True), ["ok", None, "sad"], "{ok,NULL,sad}"),
    ):
        stored = to_storage(kind)(value)
        assert from_storage(kind, stored) == to_json(kind, stored) == value
        assert shown_text(kind, stored) == text
        assert from_text(kind, text) == stored
        assert type_from_wire(type_to_wire(kind)) == kind
        assert oid_of(kind) == enum_oid(MOOD.type_id, array=element_of(kind) is not None)
        for form in (0, 1):
            sent = make_encoder(kind, form, UTC)(stored)
            assert make_decoder(kind, form, UTC)(sent[4:]) == stored


def test_a_version_with_more_labels_holds_all_of_another() -> None:
    one, grown = enum_type(MOOD), enum_type(GROWN)
    other = enum_type(Enumeration(ENUMS_FROM + 2, "mood", MOOD.labels))
    renamed = enum_type(rename_label(GROWN, "ok", "fine"))
    assert holds_all_of(grown, one)
    assert not holds_all_of(one, grown)
    assert not holds_all_of(renamed, one)
    assert not holds_all_of(other, one)
    back = cast_for(grown, one, "assignment")
    assert back is not None
    assert back.compute(MOOD.place_of("ok")) == MOOD.place_of("ok")
    with pytest.raises(InvalidText):
        back.compute(GROWN.place_of("meh"))
    assert cast_for(other, one, "explicit") is None
    assert cast_for(one, Type("text"), "implicit") is None
    assert cast_for(Type("text"), one, "assignment") is None


def test_an_earlier_release_is_told_of_none() -> None:
    body = {"columns": [{"id": 1, **type_to_wire(enum_type(MOOD))}]}
    assert find_newer_type([body], Feature.COLUMN_TYPES) == "enum"
    assert find_newer_type([{"checks": [{"expression": f"c = 'ok'::\"{MOOD.kept_name}\""}]}], 5)
    assert find_newer_type([body], Feature.ENUMS) == ""


def test_a_type_that_nobody_has_looked_up_takes_any_label() -> None:
    assert from_text(enum_type(unresolved("mood")), "whatever") == 0


def test_numbers_of_types_beyond_those_side_by_side_differ() -> None:
    far = [
        enum_oid(ENUMS_FROM + 5_000 + n, array=array) for n in range(50) for array in (False, True)
    ]
    assert len({*far}) == 100
    assert all(number >= 1 << 31 for number in far)
