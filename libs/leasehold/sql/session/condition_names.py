"""The names of errors in PL/pgSQL's EXCEPTION WHEN, and what of an SQLSTATE each stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OTHERS: Final = "others"
_UNCAUGHT: Final = frozenset({"57014", "P0004"})
"""What OTHERS leaves out: a statement that was cancelled, and ASSERT."""

_BY_CLASS: Final[Mapping[str, str]] = {
    "02": "000 no_data, 001 no_additional_dynamic_result_sets_returned",
    "03": "000 sql_statement_not_yet_complete",
    "08": (
        "000 connection_exception, 001 sqlclient_unable_to_establish_sqlconnection, 003 "
        "connection_does_not_exist, 004 sqlserver_rejected_establishment_of_sqlconnection, "
        "006 connection_failure, 007 transaction_resolution_unknown, P01 protocol_violation"
    ),
    "09": "000 triggered_action_exception",
    "0A": "000 feature_not_supported",
    "0B": "000 invalid_transaction_initiation",
    "0F": "000 locator_exception, 001 invalid_locator_specification",
    "0L": "000 invalid_grantor, P01 invalid_grant_operation",
    "0P": "000 invalid_role_specification",
    "0Z": "000 diagnostics_exception, 002 stacked_diagnostics_accessed_without_active_handler",
    "10": "608 invalid_argument_for_xquery",
    "20": "000 case_not_found",
    "21": "000 cardinality_violation",
    "22": (
        "000 data_exception, 001 string_data_right_truncation, 002 "
        "null_value_no_indicator_parameter, 003 numeric_value_out_of_range, 004 "
        "null_value_not_allowed, 005 error_in_assignment, 007 invalid_datetime_format, 008 "
        "datetime_field_overflow, 009 invalid_time_zone_displacement_value, 00B "
        "escape_character_conflict, 00C invalid_use_of_escape_character, 00D "
        "invalid_escape_octet, 00F zero_length_character_string, 00G "
        "most_specific_type_mismatch, 00H sequence_generator_limit_exceeded, 00L "
        "not_an_xml_document, 00M invalid_xml_document, 00N invalid_xml_content, 00S "
        "invalid_xml_comment, 00T invalid_xml_processing_instruction, 010 "
        "invalid_indicator_parameter_value, 011 substring_error, 012 division_by_zero, 013 "
        "invalid_preceding_or_following_size, 014 invalid_argument_for_ntile_function, 015 "
        "interval_field_overflow, 016 invalid_argument_for_nth_value_function, 018 "
        "invalid_character_value_for_cast, 019 invalid_escape_character, 01B "
        "invalid_regular_expression, 01E invalid_argument_for_logarithm, 01F "
        "invalid_argument_for_power_function, 01G invalid_argument_for_width_bucket_function, "
        "01W invalid_row_count_in_limit_clause, 01X "
        "invalid_row_count_in_result_offset_clause, 021 character_not_in_repertoire, 022 "
        "indicator_overflow, 023 invalid_parameter_value, 024 unterminated_c_string, 025 "
        "invalid_escape_sequence, 026 string_data_length_mismatch, 027 trim_error, 02E "
        "array_subscript_error, 02G invalid_tablesample_repeat, 02H "
        "invalid_tablesample_argument, 030 duplicate_json_object_key_value, 031 "
        "invalid_argument_for_sql_json_datetime_function, 032 invalid_json_text, 033 "
        "invalid_sql_json_subscript, 034 more_than_one_sql_json_item, 035 no_sql_json_item, "
        "036 non_numeric_sql_json_item, 037 non_unique_keys_in_a_json_object, 038 "
        "singleton_sql_json_item_required, 039 sql_json_array_not_found, 03A "
        "sql_json_member_not_found, 03B sql_json_number_not_found, 03C "
        "sql_json_object_not_found, 03D too_many_json_array_elements, 03E "
        "too_many_json_object_members, 03F sql_json_scalar_required, 03G "
        "sql_json_item_cannot_be_cast_to_target_type, P01 floating_point_exception, P02 "
        "invalid_text_representation, P03 invalid_binary_representation, P04 "
        "bad_copy_file_format, P05 untranslatable_character, P06 "
        "nonstandard_use_of_escape_character"
    ),
    "23": (
        "000 integrity_constraint_violation, 001 restrict_violation, 502 not_null_violation, "
        "503 foreign_key_violation, 505 unique_violation, 514 check_violation, P01 "
        "exclusion_violation"
    ),
    "24": "000 invalid_cursor_state",
    "25": (
        "000 invalid_transaction_state, 001 active_sql_transaction, 002 "
        "branch_transaction_already_active, 003 "
        "inappropriate_access_mode_for_branch_transaction, 004 "
        "inappropriate_isolation_level_for_branch_transaction, 005 "
        "no_active_sql_transaction_for_branch_transaction, 006 read_only_sql_transaction, 007 "
        "schema_and_data_statement_mixing_not_supported, 008 "
        "held_cursor_requires_same_isolation_level, P01 no_active_sql_transaction, P02 "
        "in_failed_sql_transaction, P03 idle_in_transaction_session_timeout, P04 "
        "transaction_timeout"
    ),
    "26": "000 invalid_sql_statement_name",
    "27": "000 triggered_data_change_violation",
    "28": "000 invalid_authorization_specification, P01 invalid_password",
    "2B": "000 dependent_privilege_descriptors_still_exist, P01 dependent_objects_still_exist",
    "2D": "000 invalid_transaction_termination",
    "2F": (
        "000 sql_routine_exception, 002 modifying_sql_data_not_permitted, 003 "
        "prohibited_sql_statement_attempted, 004 reading_sql_data_not_permitted, 005 "
        "function_executed_no_return_statement"
    ),
    "34": "000 invalid_cursor_name",
    "38": "000 external_routine_exception, 001 containing_sql_not_permitted",
    "39": (
        "000 external_routine_invocation_exception, 001 invalid_sqlstate_returned, P01 "
        "trigger_protocol_violated, P02 srf_protocol_violated, P03 "
        "event_trigger_protocol_violated"
    ),
    "3B": "000 savepoint_exception, 001 invalid_savepoint_specification",
    "3D": "000 invalid_catalog_name",
    "3F": "000 invalid_schema_name",
    "40": (
        "000 transaction_rollback, 001 serialization_failure, 002 "
        "transaction_integrity_constraint_violation, 003 statement_completion_unknown, P01 "
        "deadlock_detected"
    ),
    "42": (
        "000 syntax_error_or_access_rule_violation, 501 insufficient_privilege, 601 "
        "syntax_error, 602 invalid_name, 611 invalid_column_definition, 622 name_too_long, "
        "701 duplicate_column, 702 ambiguous_column, 703 undefined_column, 704 "
        "undefined_object, 710 duplicate_object, 712 duplicate_alias, 723 duplicate_function, "
        "725 ambiguous_function, 803 grouping_error, 804 datatype_mismatch, 809 "
        "wrong_object_type, 830 invalid_foreign_key, 846 cannot_coerce, 883 "
        "undefined_function, 8C9 generated_always, 939 reserved_name, P01 undefined_table, "
        "P02 undefined_parameter, P03 duplicate_cursor, P04 duplicate_database, P05 "
        "duplicate_prepared_statement, P06 duplicate_schema, P07 duplicate_table, P08 "
        "ambiguous_parameter, P09 ambiguous_alias, P10 invalid_column_reference, P11 "
        "invalid_cursor_definition, P12 invalid_database_definition, P13 "
        "invalid_function_definition, P14 invalid_prepared_statement_definition, P15 "
        "invalid_schema_definition, P16 invalid_table_definition, P17 "
        "invalid_object_definition, P18 indeterminate_datatype, P19 invalid_recursion, P20 "
        "windowing_error, P21 collation_mismatch, P22 indeterminate_collation"
    ),
    "44": "000 with_check_option_violation",
    "53": (
        "000 insufficient_resources, 100 disk_full, 200 out_of_memory, 300 "
        "too_many_connections, 400 configuration_limit_exceeded"
    ),
    "54": (
        "000 program_limit_exceeded, 001 statement_too_complex, 011 too_many_columns, 023 "
        "too_many_arguments"
    ),
    "55": (
        "000 object_not_in_prerequisite_state, 006 object_in_use, P02 "
        "cant_change_runtime_param, P03 lock_not_available, P04 unsafe_new_enum_value_usage"
    ),
    "57": (
        "000 operator_intervention, 014 query_canceled, P01 admin_shutdown, P02 "
        "crash_shutdown, P03 cannot_connect_now, P04 database_dropped, P05 "
        "idle_session_timeout"
    ),
    "58": (
        "000 system_error, 030 io_error, P01 undefined_file, P02 duplicate_file, P03 "
        "file_name_too_long"
    ),
    "72": "000 snapshot_too_old",
    "F0": "000 config_file_error, 001 lock_file_exists",
    "P0": (
        "000 plpgsql_error, 001 raise_exception, 002 no_data_found, 003 too_many_rows, 004 "
        "assert_failure"
    ),
    "XX": "000 internal_error, 001 data_corrupted, 002 index_corrupted",
}
"""By the class of SQLSTATEs: their last three characters, and their names."""
CODES: Final[Mapping[str, str]] = {
    name: group + rest
    for group, listed in _BY_CLASS.items()
    for rest, name in (each.split() for each in listed.split(", "))
}
"""SQLSTATEs by their names."""


def is_caught(sqlstate: str, condition: str) -> bool:
    """Return whether a condition, an SQLSTATE or `OTHERS`, stands for an error: one that ends with
    000 stands for all of its class."""
    if condition == OTHERS:
        return sqlstate not in _UNCAUGHT
    if condition.endswith("000"):
        return sqlstate[:2] == condition[:2]
    return sqlstate == condition
