"""Goal: each type that an index compares has one operator class by default, and takes only classes
that compare its values as it does.

Method: all declared types against all classes; texts that stand behind a key.
"""

from __future__ import annotations

import pytest

from leasehold.values.declared import DECLARED, ENUM, Declared
from leasehold.values.operator_classes import (
    BY_CLASS_NAME,
    CLASSES,
    class_of_key,
    default_class,
    number_of_input,
    takes_type,
)
from leasehold.values.types import Type, array_of


def test_names_and_numbers_are_each_of_one_class() -> None:
    assert len({each.name for each in CLASSES}) == len(CLASSES)
    assert len({each.oid for each in CLASSES}) == len(CLASSES)
    families = {each.family for each in CLASSES}
    assert len({family.oid for family in families}) == len(families)


@pytest.mark.parametrize("declared", [*DECLARED, ENUM], ids=lambda each: each.name)
def test_a_type_has_a_class_by_default_that_takes_it_where_indexes_do(declared: Declared) -> None:
    kind = Type(declared.name)
    usual = default_class(kind)
    if usual is None:
        assert not declared.operators
        assert not any(takes_type(each, kind) for each in CLASSES)
    else:
        assert usual.by_default
        assert takes_type(usual, kind)
        taking = [each for each in CLASSES if each.by_default and takes_type(each, kind)]
        assert taking == [usual]


def test_a_class_takes_a_type_whose_values_it_compares_alike() -> None:
    taken = {
        each.name: sorted(
            declared.name for declared in DECLARED if takes_type(each, Type(declared.name))
        )
        for each in CLASSES
        if not each.by_default
    }
    texts = ["text", "varchar"]
    assert taken == {
        "bpchar_pattern_ops": ["char"],
        "cidr_ops": ["cidr", "inet"],
        "text_pattern_ops": texts,
        "varchar_ops": texts,
        "varchar_pattern_ops": texts,
    }
    assert not any(takes_type(each, array_of(Type("text"))) for each in CLASSES)


@pytest.mark.parametrize(
    ("order", "name"),
    [
        ("", "text_ops"),
        ("DESC NULLS LAST", "text_ops"),
        ("NULLS FIRST", "text_ops"),
        ("varchar_pattern_ops", "varchar_pattern_ops"),
        ("text_pattern_ops DESC", "text_pattern_ops"),
    ],
)
def test_the_class_of_a_key_is_the_one_that_is_named(order: str, name: str) -> None:
    assert class_of_key(Type("varchar", 9), order) is BY_CLASS_NAME[name]


def test_a_key_of_a_type_that_no_index_compares_has_no_class() -> None:
    assert class_of_key(Type("jsonb"), "") is None


def test_the_number_of_what_a_class_takes_is_the_type_s() -> None:
    assert number_of_input(BY_CLASS_NAME["varchar_ops"]) == 25
    assert number_of_input(BY_CLASS_NAME["enum_ops"]) == ENUM.oid
