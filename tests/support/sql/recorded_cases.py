"""Expressions with the text that PostgreSQL 15 gives of them, and what it refuses: of arrays, of
json, of regular expressions (`recorded_cases.json`), and of NaN."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

_KEPT: Final = json.loads((Path(__file__).parent / "recorded_cases.json").read_text())
CASES: Final[dict[str, str | None]] = _KEPT["given"]
REFUSED: Final[dict[str, str]] = _KEPT["refused"]
ONLY_HERE_REFUSED: Final[dict[str, str]] = _KEPT["refused_here_alone"]
"""What PostgreSQL does and this does not."""
JSON: Final[dict[str, str | None]] = _KEPT["json"]
"""Of functions over json and jsonb; those of operators have `value_cases.jsonl`."""
JSON_NAMES: Final[list[str]] = _KEPT["json_names"]
"""Of pg_proc, but for what types and aggregates have for themselves."""
JSON_REFUSED: Final[dict[str, str]] = _KEPT["json_refused"]
CHAR: Final[dict[str, str | None]] = _KEPT["char"]
"""Of char(n), and bpchar without a length."""
REGULAR: Final[dict[str, str | None]] = _KEPT["regular"]
REGULAR_REFUSED: Final[dict[str, str]] = _KEPT["regular_refused"]
REGULAR_ONLY_HERE_REFUSED: Final[dict[str, str]] = _KEPT["regular_refused_here_alone"]

NAN: Final[dict[str, str | None]] = {
    "'NaN'::float8 / 0": "NaN",
    "'Infinity'::float8 / '-Infinity'": "NaN",
    "'NaN'::float8 ^ 0 + power(1, 'NaN'::float8)": "2",
    "sin('NaN'::float8) + asin('NaN'::float8)": "NaN",
    "to_jsonb(array['NaN'::float8, 1])": '["NaN", 1]',
    "greatest(1.5, 'NaN'::float8, 'Infinity') || ' ' || least('NaN'::float8, 2)": "NaN 2",
    "array(select x from unnest('{NaN,Infinity,NULL,2}'::float8[]) x order by x desc)": (
        "{NULL,NaN,Infinity,2}"
    ),
    **{
        f"select {call} from (values {rows}) t (x)": answer
        for call, rows, answer in (
            ("max(x) || ' ' || min(x)", "('NaN'::float8), (1), ('Infinity')", "NaN 1"),
            ("var_pop(x)", "('NaN'::float8)", "NaN"),
            ("stddev(x)", "('Infinity'::float8), (1)", "NaN"),
            ("sum(x)", "('Infinity'::float8), ('-Infinity')", "NaN"),
            ("array_agg(distinct x)", "('NaN'::float8), (1), ('NaN')", "{1,NaN}"),
            ("string_agg(distinct x::text, ' ')", "('NaN'::float8), (1), ('NaN')", "1 NaN"),
            ("count(distinct x)", "('NaN'::float8), (1), ('NaN')", "2"),
            ("sum(distinct x)", "('NaN'::float8), (1), ('NaN')", "NaN"),
        )
    },
}
NAN_REFUSED: Final[dict[str, str]] = {
    "select 'NaN'::float8::bigint": "22003",
    "select interval '1 day' * 'NaN'::float8": "22008",
    "select to_timestamp('NaN'::float8)": "22008",
}
