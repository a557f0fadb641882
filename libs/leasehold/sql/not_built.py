"""Functions and operators of PostgreSQL that are not here: each is refused with a sentence of its
own (0A000), so that nobody looks for a misspelt name."""

from __future__ import annotations

from typing import Final

_ARRAYS: Final = "there are no arrays"
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
            *("array_length", "array_position", "array_to_string", "string_to_array", "unnest"),
            *("cardinality", "array_append", "array_cat", "array_remove", "parse_ident"),
            *("jsonb_array_elements", "jsonb_array_elements_text", "jsonb_each", "jsonb_each_text"),
            *("jsonb_object_keys", "string_to_table", "jsonb_to_recordset"),
        ),
        _ARRAYS,
    ),
    **dict.fromkeys(
        ("to_json", "json_build_object", "json_build_array", "row_to_json", "json_typeof"), _JSON
    ),
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
    **dict.fromkeys(("?|", "?&"), _ARRAYS),
    **dict.fromkeys(("@?", "@@"), "there is no jsonpath: #>> is"),
    "&&": _ARRAYS,
}
TO_CHAR: Final = "to_char of numbers is not supported: round, lpad and CAST AS text are"
