"""Functions and operators of PostgreSQL that are not here: each is refused with a sentence of its
own (0A000), so that nobody looks for a misspelt name."""

from __future__ import annotations

from typing import Final

_ROWS: Final = "functions that give rows of several columns are not supported"
_DIMENSIONS: Final = "arrays have one dimension, and begin with element 1"
_PATTERNS: Final = (
    "regular expressions are not supported: LIKE, starts_with, split_part and translate are"
)
_JSON: Final = "json is not supported: jsonb is, and to_jsonb, jsonb_build_object, jsonb_agg"
_SEQUENCES: Final = "there are no sequences: gen_random_uuid() gives unique values"

FUNCTIONS: Final = {
    **dict.fromkeys(
        (
            *("regexp_replace", "regexp_match", "regexp_matches", "regexp_like", "regexp_count"),
            *("regexp_instr", "regexp_substr", "regexp_split_to_array", "regexp_split_to_table"),
            "similar_to_escape",
        ),
        _PATTERNS,
    ),
    **dict.fromkeys(
        (
            *("jsonb_each", "jsonb_each_text", "jsonb_to_record", "jsonb_to_recordset"),
            *("jsonb_populate_record", "jsonb_populate_recordset"),
        ),
        _ROWS,
    ),
    "array_fill": _DIMENSIONS,
    **dict.fromkeys(
        ("trim_array", "array_sample", "array_shuffle", "parse_ident"),
        "it is not supported: slices a[1:2] and string_to_array are",
    ),
    **dict.fromkeys(("to_json", "json_build_array", "row_to_json", "json_typeof"), _JSON),
    **dict.fromkeys(("nextval", "currval", "lastval", "setval"), _SEQUENCES),
    **dict.fromkeys(
        ("jsonb_path_query", "jsonb_path_exists", "jsonb_path_match"),
        "there is no jsonpath: #>> is",
    ),
    "to_number": "to_number is not supported: CAST the text",
    "width_bucket": "width_bucket is not supported",
    "unistr": "unistr is not supported: chr is",
    "normalize": "normalize is not supported",
}
OPERATORS: Final = {
    **dict.fromkeys(("~", "~*", "!~", "!~*"), _PATTERNS),
    **dict.fromkeys(("@?", "@@"), "there is no jsonpath: #>> is"),
}
TO_CHAR: Final = "to_char of numbers is not supported: round, lpad and CAST AS text are"
