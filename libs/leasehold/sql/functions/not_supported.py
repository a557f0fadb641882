"""Functions and operators of PostgreSQL that are not here: each is refused with a sentence of its
own (0A000), so that nobody looks for a misspelt name."""

from __future__ import annotations

from typing import Final

_ROWS: Final = "functions that give rows of several columns are not supported"
_DIMENSIONS: Final = "arrays have one dimension, and begin with element 1"

FUNCTIONS: Final = {
    **dict.fromkeys(
        ("regexp_matches", "regexp_instr"),
        "it is not supported: regexp_match, regexp_substr and regexp_split_to_table are",
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
    **dict.fromkeys(
        (
            *("row_to_json", "json_to_record", "json_to_recordset", "json_populate_record"),
            "json_populate_recordset",
        ),
        _ROWS,
    ),
    **dict.fromkeys(
        (
            *("jsonb_path_query", "jsonb_path_exists", "jsonb_path_match"),
            *("jsonb_path_query_array", "jsonb_path_query_first", "jsonb_path_query_tz"),
            *("jsonb_path_exists_tz", "jsonb_path_match_tz", "jsonb_path_query_array_tz"),
            *("jsonb_path_query_first_tz", "jsonb_path_exists_opr", "jsonb_path_match_opr"),
        ),
        "there is no jsonpath: #>> is",
    ),
    **dict.fromkeys(
        ("json_to_tsvector", "jsonb_to_tsvector"), "text search is not supported: ILIKE is"
    ),
    **dict.fromkeys(
        (
            *("jsonb_cmp", "jsonb_eq", "jsonb_ne", "jsonb_lt", "jsonb_le", "jsonb_ge"),
            *("jsonb_gt", "jsonb_hash", "jsonb_hash_extended"),
        ),
        "it is not supported: the operators = and < are, and md5 of the text",
    ),
    **dict.fromkeys(
        ("convert_to", "convert_from", "convert"), "it is not supported: encode and decode are"
    ),
    **dict.fromkeys(
        ("get_byte", "set_byte", "get_bit", "set_bit", "bit_count"),
        "it is not supported: substring of bytea is",
    ),
    "to_number": "to_number is not supported: CAST the text",
    "width_bucket": "width_bucket is not supported",
    "unistr": "unistr is not supported: chr is",
    "normalize": "normalize is not supported",
}
OPERATORS: Final = {
    **dict.fromkeys(("@?", "@@"), "there is no jsonpath: #>> is"),
}
TO_CHAR: Final = "to_char of numbers is not supported: round, lpad and CAST AS text are"
