"""Relations of PostgreSQL that clients name beside those of `relations.py`, in its notation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_STAT_TABLES: Final = """
    relid oid?, schemaname name?, relname name?, seq_scan bigint?, seq_tup_read bigint?, idx_scan
    bigint?, idx_tup_fetch bigint?, n_tup_ins bigint?, n_tup_upd bigint?, n_tup_del bigint?,
    n_tup_hot_upd bigint?, n_live_tup bigint?, n_dead_tup bigint?, n_mod_since_analyze bigint?,
    n_ins_since_vacuum bigint?, last_vacuum timestamptz?, last_autovacuum timestamptz?,
    last_analyze timestamptz?, last_autoanalyze timestamptz?, vacuum_count bigint?,
    autovacuum_count bigint?, analyze_count bigint?, autoanalyze_count bigint?
"""
_STAT_INDEXES: Final = """
    relid oid?, indexrelid oid?, schemaname name?, relname name?, indexrelname name?, idx_scan
    bigint?, idx_tup_read bigint?, idx_tup_fetch bigint?
"""
_STATIO_TABLES: Final = """
    relid oid?, schemaname name?, relname name?, heap_blks_read bigint?, heap_blks_hit bigint?,
    idx_blks_read bigint?, idx_blks_hit bigint?, toast_blks_read bigint?, toast_blks_hit bigint?,
    tidx_blks_read bigint?, tidx_blks_hit bigint?
"""
_STATIO_INDEXES: Final = """
    relid oid?, indexrelid oid?, schemaname name?, relname name?, indexrelname name?,
    idx_blks_read bigint?, idx_blks_hit bigint?
"""
"""Nobody counts scans and rows of one table: which there are is told, and NULL for each count."""

PG_CATALOG_MORE: Final[Mapping[str, str]] = {
    "pg_proc": """
        oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost double
        precision, prorows double precision, provariadic oid, prosupport text, prokind
        "char", prosecdef boolean, proleakproof boolean, proisstrict boolean, proretset
        boolean, provolatile "char", proparallel "char", pronargs smallint,
        pronargdefaults smallint, prorettype oid, proargtypes oidvector, proallargtypes
        oid[]?, proargmodes "char"[]?, proargnames text[]?, proargdefaults text?,
        protrftypes oid[]?, prosrc text, probin text?, prosqlbody text?, proconfig
        text[]?, proacl text[]?
    """,
    "pg_language": """
        oid oid, lanname name, lanowner oid, lanispl boolean, lanpltrusted boolean,
        lanplcallfoid oid, laninline oid, lanvalidator oid, lanacl text[]?
    """,
    "pg_cast": """
        oid oid, castsource oid, casttarget oid, castfunc oid, castcontext "char",
        castmethod "char"
    """,
    "pg_conversion": """
        oid oid, conname name, connamespace oid, conowner oid, conforencoding integer,
        contoencoding integer, conproc regproc, condefault boolean
    """,
    "pg_db_role_setting": """
        setdatabase oid, setrole oid, setconfig text[]?
    """,
    "pg_default_acl": """
        oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype "char", defaclacl
        text[]
    """,
    "pg_event_trigger": """
        oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled
        "char", evttags text[]?
    """,
    "pg_extension": """
        oid oid, extname name, extowner oid, extnamespace oid, extrelocatable boolean,
        extversion text, extconfig oid[]?, extcondition text[]?
    """,
    "pg_foreign_data_wrapper": """
        oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwacl
        text[]?, fdwoptions text[]?
    """,
    "pg_foreign_server": """
        oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text?, srvversion text?,
        srvacl text[]?, srvoptions text[]?
    """,
    "pg_foreign_table": """
        ftrelid oid, ftserver oid, ftoptions text[]?
    """,
    "pg_largeobject_metadata": """
        oid oid, lomowner oid, lomacl text[]?
    """,
    "pg_operator": """
        oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind "char", oprcanmerge
        boolean, oprcanhash boolean, oprleft oid, oprright oid, oprresult oid, oprcom oid,
        oprnegate oid, oprcode regproc, oprrest regproc, oprjoin regproc
    """,
    "pg_amop": """
        oid oid, amopfamily oid, amoplefttype oid, amoprighttype oid, amopstrategy
        smallint, amoppurpose "char", amopopr oid, amopmethod oid, amopsortfamily oid
    """,
    "pg_amproc": """
        oid oid, amprocfamily oid, amproclefttype oid, amprocrighttype oid, amprocnum
        smallint, amproc regproc
    """,
    "pg_parameter_acl": """
        oid oid, parname text, paracl text[]?
    """,
    "pg_user_mappings": """
        umid oid?, srvid oid?, srvname name?, umuser oid?, usename name?, umoptions
        text[]?
    """,
    "pg_opfamily": """
        oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid
    """,
    "pg_rewrite": """
        oid oid, rulename name, ev_class oid, ev_type "char", ev_enabled "char",
        is_instead boolean, ev_qual text, ev_action text
    """,
    "pg_subscription": """
        oid oid, subdbid oid, subskiplsn text, subname name, subowner oid, subenabled
        boolean, subbinary boolean, substream boolean, subtwophasestate "char",
        subdisableonerr boolean, subconninfo text, subslotname name?, subsynccommit text,
        subpublications text[]
    """,
    "pg_init_privs": """
        objoid oid, classoid oid, objsubid integer, privtype "char", initprivs text[]
    """,
    "pg_transform": """
        oid oid, trftype oid, trflang oid, trffromsql regproc, trftosql regproc
    """,
    "pg_seclabels": """
        objoid oid?, classoid oid?, objsubid integer?, objtype text?, objnamespace oid?,
        objname text?, provider text?, label text?
    """,
    "pg_tablespace": """
        oid oid, spcname name, spcowner oid, spcacl text[]?, spcoptions text[]?
    """,
    "pg_ts_config": """
        oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid
    """,
    "pg_ts_dict": """
        oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid,
        dictinitoption text?
    """,
    "pg_ts_parser": """
        oid oid, prsname name, prsnamespace oid, prsstart text, prstoken text, prsend
        text, prsheadline text, prslextype text
    """,
    "pg_ts_template": """
        oid oid, tmplname name, tmplnamespace oid, tmplinit text, tmpllexize text
    """,
    "pg_partitioned_table": """
        partrelid oid, partstrat "char", partnatts smallint, partdefid oid, partattrs
        smallint[], partclass oid[], partcollation oid[], partexprs text?
    """,
    "pg_aggregate": """
        aggfnoid text, aggkind "char", aggnumdirectargs smallint, aggtransfn text,
        aggfinalfn text, aggcombinefn text, aggserialfn text, aggdeserialfn text,
        aggmtransfn text, aggminvtransfn text, aggmfinalfn text, aggfinalextra boolean,
        aggmfinalextra boolean, aggfinalmodify "char", aggmfinalmodify "char", aggsortop
        oid, aggtranstype oid, aggtransspace integer, aggmtranstype oid, aggmtransspace
        integer, agginitval text?, aggminitval text?
    """,
    "pg_depend": """
        classid oid, objid oid, objsubid integer, refclassid oid, refobjid oid,
        refobjsubid integer, deptype "char"
    """,
    "pg_shdescription": """
        objoid oid, classoid oid, description text
    """,
    "pg_tables": """
        schemaname name?, tablename name?, tableowner name?, tablespace name?, hasindexes
        boolean?, hasrules boolean?, hastriggers boolean?, rowsecurity boolean?
    """,
    "pg_views": """
        schemaname name?, viewname name?, viewowner name?, definition text?
    """,
    "pg_matviews": """
        schemaname name?, matviewname name?, matviewowner name?, tablespace name?,
        hasindexes boolean?, ispopulated boolean?, definition text?
    """,
    "pg_indexes": """
        schemaname name?, tablename name?, indexname name?, tablespace name?, indexdef
        text?
    """,
    "pg_sequences": """
        schemaname name?, sequencename name?, sequenceowner name?, data_type regtype?,
        start_value bigint?, min_value bigint?, max_value bigint?, increment_by bigint?,
        cycle boolean?, cache_size bigint?, last_value bigint?
    """,
    "pg_settings": """
        name text?, setting text?, unit text?, category text?, short_desc text?,
        extra_desc text?, context text?, vartype text?, source text?, min_val text?,
        max_val text?, enumvals text[]?, boot_val text?, reset_val text?, sourcefile
        text?, sourceline integer?, pending_restart boolean?
    """,
    "pg_user": """
        usename name?, usesysid oid?, usecreatedb boolean?, usesuper boolean?, userepl
        boolean?, usebypassrls boolean?, passwd text?, valuntil timestamptz?, useconfig
        text[]?
    """,
    "pg_shadow": """
        usename name?, usesysid oid?, usecreatedb boolean?, usesuper boolean?, userepl
        boolean?, usebypassrls boolean?, passwd text?, valuntil timestamptz?, useconfig
        text[]?
    """,
    "pg_group": """
        groname name?, grosysid oid?, grolist oid[]?
    """,
    "pg_authid": """
        oid oid, rolname name, rolsuper boolean, rolinherit boolean, rolcreaterole boolean,
        rolcreatedb boolean, rolcanlogin boolean, rolreplication boolean, rolbypassrls
        boolean, rolconnlimit integer, rolpassword text?, rolvaliduntil timestamptz?
    """,
    "pg_prepared_statements": """
        name text?, statement text?, prepare_time timestamptz?, parameter_types text[]?,
        from_sql boolean?, generic_plans bigint?, custom_plans bigint?
    """,
    "pg_available_extensions": """
        name name?, default_version text?, installed_version text?, comment text?
    """,
    "pg_policies": """
        schemaname name?, tablename name?, policyname name?, permissive text?, roles text[]?, cmd
        text?, qual text?, with_check text?
    """,
    "pg_rules": """
        schemaname name?, tablename name?, rulename name?, definition text?
    """,
    **dict.fromkeys(("pg_stat_all_tables", "pg_stat_user_tables"), _STAT_TABLES),
    **dict.fromkeys(("pg_stat_all_indexes", "pg_stat_user_indexes"), _STAT_INDEXES),
    **dict.fromkeys(("pg_statio_all_tables", "pg_statio_user_tables"), _STATIO_TABLES),
    **dict.fromkeys(("pg_statio_all_indexes", "pg_statio_user_indexes"), _STATIO_INDEXES),
    "pg_user_mapping": """
        oid oid, umuser oid, umserver oid, umoptions text[]?
    """,
}

_GRANT: Final = "grantor text?, grantee text?,"
_TABLE: Final = "table_catalog text?, table_schema text?, table_name text?,"
_TYPE: Final = "privilege_type text?, is_grantable text?"
_OBJECT: Final = "object_catalog text?, object_schema text?, object_name text?, object_type text?,"
_MEMBER: Final = "grantee text?, role_name text?, is_grantable text?"
_GRANTED: Final[Mapping[str, str]] = {
    "enabled_roles": "role_name text?",
    "applicable_roles": _MEMBER,
    "administrable_role_authorizations": _MEMBER,
    "table_privileges": f"{_GRANT} {_TABLE} {_TYPE}, with_hierarchy text?",
    "role_table_grants": f"{_GRANT} {_TABLE} {_TYPE}, with_hierarchy text?",
    "column_privileges": f"{_GRANT} {_TABLE} column_name text?, {_TYPE}",
    "role_column_grants": f"{_GRANT} {_TABLE} column_name text?, {_TYPE}",
    "usage_privileges": f"{_GRANT} {_OBJECT} {_TYPE}",
    "role_usage_grants": f"{_GRANT} {_OBJECT} {_TYPE}",
}

INFORMATION_MORE: Final[Mapping[str, str]] = {
    "character_sets": """
        character_set_catalog text?, character_set_schema text?, character_set_name text?,
        character_repertoire text?, form_of_use text?, default_collate_catalog text?,
        default_collate_schema text?, default_collate_name text?
    """,
    "element_types": """
        object_catalog text?, object_schema text?, object_name text?, object_type text?,
        collection_type_identifier text?, data_type text?, character_maximum_length integer?,
        character_octet_length integer?, character_set_catalog text?, character_set_schema text?,
        character_set_name text?, collation_catalog text?, collation_schema text?, collation_name
        text?, numeric_precision integer?, numeric_precision_radix integer?, numeric_scale
        integer?, datetime_precision integer?, interval_type text?, interval_precision integer?,
        domain_default text?, udt_catalog text?, udt_schema text?, udt_name text?, scope_catalog
        text?, scope_schema text?, scope_name text?, maximum_cardinality integer?, dtd_identifier
        text?
    """,
    "views": """
        table_catalog text?, table_schema text?, table_name text?, view_definition text?,
        check_option text?, is_updatable text?, is_insertable_into text?,
        is_trigger_updatable text?, is_trigger_deletable text?, is_trigger_insertable_into
        text?
    """,
    "sequences": """
        sequence_catalog text?, sequence_schema text?, sequence_name text?, data_type
        text?, numeric_precision integer?, numeric_precision_radix integer?, numeric_scale
        integer?, start_value text?, minimum_value text?, maximum_value text?, increment
        text?, cycle_option text?
    """,
    "referential_constraints": """
        constraint_catalog text?, constraint_schema text?, constraint_name text?,
        unique_constraint_catalog text?, unique_constraint_schema text?,
        unique_constraint_name text?, match_option text?, update_rule text?, delete_rule
        text?
    """,
    "constraint_column_usage": """
        table_catalog text?, table_schema text?, table_name text?, column_name text?,
        constraint_catalog text?, constraint_schema text?, constraint_name text?
    """,
    "check_constraints": """
        constraint_catalog text?, constraint_schema text?, constraint_name text?,
        check_clause text?
    """,
    "routines": """
        specific_catalog text?, specific_schema text?, specific_name text?,
        routine_catalog text?, routine_schema text?, routine_name text?, routine_type
        text?, module_catalog text?, module_schema text?, module_name text?, udt_catalog
        text?, udt_schema text?, udt_name text?, data_type text?, character_maximum_length
        integer?, character_octet_length integer?, character_set_catalog text?,
        character_set_schema text?, character_set_name text?, collation_catalog text?,
        collation_schema text?, collation_name text?, numeric_precision integer?,
        numeric_precision_radix integer?, numeric_scale integer?, datetime_precision
        integer?, interval_type text?, interval_precision integer?, type_udt_catalog
        text?, type_udt_schema text?, type_udt_name text?, scope_catalog text?,
        scope_schema text?, scope_name text?, maximum_cardinality integer?, dtd_identifier
        text?, routine_body text?, routine_definition text?, external_name text?,
        external_language text?, parameter_style text?, is_deterministic text?,
        sql_data_access text?, is_null_call text?, sql_path text?, schema_level_routine
        text?, max_dynamic_result_sets integer?, is_user_defined_cast text?,
        is_implicitly_invocable text?, security_type text?, to_sql_specific_catalog text?,
        to_sql_specific_schema text?, to_sql_specific_name text?, as_locator text?,
        created timestamptz?, last_altered timestamptz?, new_savepoint_level text?,
        is_udt_dependent text?, result_cast_from_data_type text?, result_cast_as_locator
        text?, result_cast_char_max_length integer?, result_cast_char_octet_length
        integer?, result_cast_char_set_catalog text?, result_cast_char_set_schema text?,
        result_cast_char_set_name text?, result_cast_collation_catalog text?,
        result_cast_collation_schema text?, result_cast_collation_name text?,
        result_cast_numeric_precision integer?, result_cast_numeric_precision_radix
        integer?, result_cast_numeric_scale integer?, result_cast_datetime_precision
        integer?, result_cast_interval_type text?, result_cast_interval_precision
        integer?, result_cast_type_udt_catalog text?, result_cast_type_udt_schema text?,
        result_cast_type_udt_name text?, result_cast_scope_catalog text?,
        result_cast_scope_schema text?, result_cast_scope_name text?,
        result_cast_maximum_cardinality integer?, result_cast_dtd_identifier text?
    """,
    "triggers": """
        trigger_catalog text?, trigger_schema text?, trigger_name text?,
        event_manipulation text?, event_object_catalog text?, event_object_schema text?,
        event_object_table text?, action_order integer?, action_condition text?,
        action_statement text?, action_orientation text?, action_timing text?,
        action_reference_old_table text?, action_reference_new_table text?,
        action_reference_old_row text?, action_reference_new_row text?, created
        timestamptz?
    """,
    "domains": """
        domain_catalog text?, domain_schema text?, domain_name text?, data_type text?,
        character_maximum_length integer?, character_octet_length integer?,
        character_set_catalog text?, character_set_schema text?, character_set_name text?,
        collation_catalog text?, collation_schema text?, collation_name text?,
        numeric_precision integer?, numeric_precision_radix integer?, numeric_scale
        integer?, datetime_precision integer?, interval_type text?, interval_precision
        integer?, domain_default text?, udt_catalog text?, udt_schema text?, udt_name
        text?, scope_catalog text?, scope_schema text?, scope_name text?,
        maximum_cardinality integer?, dtd_identifier text?
    """,
    **_GRANTED,
}
