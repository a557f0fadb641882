"""Words of PostgreSQL: which stand without quotes, and which of those are no name."""

from __future__ import annotations

from typing import Final

_RESERVED: Final = """
    all analyse analyze and any array as asc asymmetric both case cast check collate column
    constraint create current_catalog current_date current_role current_time current_timestamp
    current_user default deferrable desc distinct do else end except false fetch for foreign from
    grant group having in initially intersect into lateral leading limit localtime localtimestamp
    not null offset on only or order placing primary references returning select session_user some
    symmetric system_user table then to trailing true union unique user using variadic when where
    window with
    authorization binary collation concurrently cross current_schema freeze full ilike inner is
    isnull join left like natural notnull outer overlaps right similar tablesample verbose
"""
RESERVED: Final = frozenset(_RESERVED.split())
"""Never a column or a table without quotes; the last two lines may name functions and types."""

_VOLATILE: Final = """
    now clock_timestamp statement_timestamp transaction_timestamp timeofday current_date
    current_time current_timestamp localtime localtimestamp random random_normal gen_random_uuid
    uuid_generate_v4 uuidv4 uuidv7 nextval currval lastval current_user current_role session_user
    system_user user current_catalog current_schema txid_current pg_current_xact_id
"""
VOLATILE: Final = frozenset(_VOLATILE.split())
"""Another value each time, or for each caller: never a constant."""


def is_word(text: str) -> bool:
    """A name or keyword in the form that needs no quotes."""
    return _may_start(text[:1]) and all(_may_start(c) or c.isdigit() or c == "$" for c in text)


def _may_start(character: str) -> bool:
    return character.isalpha() or character == "_" or character > "\x7f"
