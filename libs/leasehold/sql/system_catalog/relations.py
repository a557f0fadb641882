"""Relations that describe the database, in the shape that PostgreSQL 15 gives them.

`name type`, with a ? where NULL may stand. Types that nobody here has are the nearest that is:
text for regproc (where something stands) and pg_node_tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.schema_names import INFORMATION_SCHEMA, PG_CATALOG
from leasehold.pgwire.session import Column
from leasehold.sql.system_catalog.relations_more import INFORMATION_MORE, PG_CATALOG_MORE
from leasehold.values.arrays import stored_form
from leasehold.values.oids import WireType
from leasehold.values.types import Type, element_of

_NOTHING: Final[Mapping[str, Any]] = {"text": "", "name": "", '"char"': ""}


def _stored(value: Any) -> Any:
    return stored_form(value) if isinstance(value, tuple) else value


class Relation(NamedTuple):
    """A system relation. `nullable` are the names of the columns in which NULL may stand."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    nullable: frozenset[str]

    def whole(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """Storage values for all columns, arrays made of tuples; for those that `row` is silent of
        NULL where it may stand, else zero, false or what is empty."""
        unknown = row.keys() - {column.name for column in self.columns}
        assert not unknown, f"{self.name} has no {sorted(unknown)}"
        return tuple(
            _stored(row[column.name])
            if column.name in row
            else None
            if column.name in self.nullable
            else stored_form(())
            if element_of(column.type)
            else _NOTHING.get(column.type.name, 0)
            for column in self.columns
        )


_CATALOG: Final[Mapping[str, str]] = {
    "pg_namespace": """
        oid oid, nspname name, nspowner oid, nspacl text[]?
    """,
    "pg_class": """
        oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, relowner oid,
        relam oid, relfilenode oid, reltablespace oid, relpages integer, reltuples double
        precision, relallvisible integer, reltoastrelid oid, relhasindex boolean, relisshared
        boolean, relpersistence "char", relkind "char", relnatts smallint, relchecks smallint,
        relhasrules boolean, relhastriggers boolean, relhassubclass boolean, relrowsecurity
        boolean, relforcerowsecurity boolean, relispopulated boolean, relreplident "char",
        relispartition boolean, relrewrite oid, relfrozenxid integer, relminmxid integer,
        relacl text[]?, reloptions text[]?, relpartbound text?
    """,
    "pg_attribute": """
        attrelid oid, attname name, atttypid oid, attstattarget integer, attlen smallint,
        attnum smallint, attndims integer, attcacheoff integer, atttypmod integer, attbyval
        boolean, attalign "char", attstorage "char", attcompression "char", attnotnull
        boolean, atthasdef boolean, atthasmissing boolean, attidentity "char", attgenerated
        "char", attisdropped boolean, attislocal boolean, attinhcount integer, attcollation
        oid, attacl text[]?, attoptions text[]?, attfdwoptions text[]?, attmissingval text?
    """,
    "pg_type": """
        oid oid, typname name, typnamespace oid, typowner oid, typlen smallint, typbyval
        boolean, typtype "char", typcategory "char", typispreferred boolean, typisdefined
        boolean, typdelim "char", typrelid oid, typsubscript regproc, typelem oid, typarray oid,
        typinput regproc, typoutput regproc, typreceive regproc, typsend regproc, typmodin
        regproc, typmodout regproc, typanalyze regproc, typalign "char", typstorage "char",
        typnotnull boolean,
        typbasetype oid, typtypmod integer, typndims integer, typcollation oid, typdefaultbin
        text?, typdefault text?, typacl text[]?
    """,
    "pg_index": """
        indexrelid oid, indrelid oid, indnatts smallint, indnkeyatts smallint, indisunique
        boolean, indnullsnotdistinct boolean, indisprimary boolean, indisexclusion
        boolean, indimmediate boolean, indisclustered boolean, indisvalid boolean,
        indcheckxmin boolean, indisready boolean, indislive boolean, indisreplident
        boolean, indkey int2vector, indcollation oidvector, indclass oidvector, indoption
        int2vector, indexprs text?, indpred text?
    """,
    "pg_constraint": """
        oid oid, conname name, connamespace oid, contype "char", condeferrable boolean,
        condeferred boolean, convalidated boolean, conrelid oid, contypid oid, conindid oid,
        conparentid oid, confrelid oid, confupdtype "char", confdeltype "char", confmatchtype
        "char", conislocal boolean, coninhcount integer, connoinherit boolean, conkey
        smallint[]?, confkey smallint[]?, conpfeqop oid[]?, conppeqop oid[]?, conffeqop
        oid[]?, confdelsetcols smallint[]?, conexclop oid[]?, conbin text?
    """,
    "pg_am": """
        oid oid, amname name, amhandler text, amtype "char"
    """,
    "pg_attrdef": """
        oid oid, adrelid oid, adnum smallint, adbin text
    """,
    "pg_description": """
        objoid oid, classoid oid, objsubid integer, description text
    """,
    "pg_collation": """
        oid oid, collname name, collnamespace oid, collowner oid, collprovider "char",
        collisdeterministic boolean, collencoding integer, collcollate text?, collctype text?,
        colliculocale text?, collversion text?
    """,
    "pg_database": """
        oid oid, datname name, datdba oid, encoding integer, datlocprovider "char",
        datistemplate boolean, datallowconn boolean, datconnlimit integer, datfrozenxid
        integer, datminmxid integer, dattablespace oid, datcollate text, datctype text,
        daticulocale text?, datcollversion text?, datacl text[]?
    """,
    "pg_roles": """
        rolname name?, rolsuper boolean?, rolinherit boolean?, rolcreaterole boolean?,
        rolcreatedb boolean?, rolcanlogin boolean?, rolreplication boolean?, rolconnlimit
        integer?, rolpassword text?, rolvaliduntil timestamptz?, rolbypassrls boolean?,
        rolconfig text[]?, oid oid?
    """,
    "pg_opclass": """
        oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid,
        opcintype oid, opcdefault boolean, opckeytype oid
    """,
    "pg_inherits": """
        inhrelid oid, inhparent oid, inhseqno integer, inhdetachpending boolean
    """,
    "pg_policy": """
        oid oid, polname name, polrelid oid, polcmd "char", polpermissive boolean, polroles
        oid[], polqual text?, polwithcheck text?
    """,
    "pg_statistic_ext": """
        oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget
        integer, stxkeys int2vector, stxkind "char"[], stxexprs text?
    """,
    "pg_publication": """
        oid oid, pubname name, pubowner oid, puballtables boolean, pubinsert boolean,
        pubupdate boolean, pubdelete boolean, pubtruncate boolean, pubviaroot boolean
    """,
    "pg_publication_rel": """
        oid oid, prpubid oid, prrelid oid, prqual text?, prattrs int2vector?
    """,
    "pg_publication_namespace": """
        oid oid, pnpubid oid, pnnspid oid
    """,
    "pg_trigger": """
        oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype smallint,
        tgenabled "char", tgisinternal boolean, tgconstrrelid oid, tgconstrindid oid,
        tgconstraint oid, tgdeferrable boolean, tginitdeferred boolean, tgnargs smallint,
        tgattr int2vector, tgargs bytea, tgqual text?, tgoldtable name?, tgnewtable name?
    """,
    "pg_sequence": """
        seqrelid oid, seqtypid oid, seqstart bigint, seqincrement bigint, seqmax bigint,
        seqmin bigint, seqcache bigint, seqcycle boolean
    """,
    "pg_range": """
        rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid,
        rngcanonical text, rngsubdiff text
    """,
    "pg_enum": """
        oid oid, enumtypid oid, enumsortorder double precision, enumlabel name
    """,
    "pg_auth_members": """
        roleid oid, member oid, grantor oid, admin_option boolean
    """,
}
_INFORMATION: Final[Mapping[str, str]] = {
    "schemata": """
        catalog_name text?, schema_name text?, schema_owner text?,
        default_character_set_catalog text?, default_character_set_schema text?,
        default_character_set_name text?, sql_path text?
    """,
    "tables": """
        table_catalog text?, table_schema text?, table_name text?, table_type text?,
        self_referencing_column_name text?, reference_generation text?,
        user_defined_type_catalog text?, user_defined_type_schema text?,
        user_defined_type_name text?, is_insertable_into text?, is_typed text?, commit_action
        text?
    """,
    "columns": """
        table_catalog text?, table_schema text?, table_name text?, column_name text?,
        ordinal_position integer?, column_default text?, is_nullable text?, data_type text?,
        character_maximum_length integer?, character_octet_length integer?, numeric_precision
        integer?, numeric_precision_radix integer?, numeric_scale integer?, datetime_precision
        integer?, interval_type text?, interval_precision integer?, character_set_catalog
        text?, character_set_schema text?, character_set_name text?, collation_catalog text?,
        collation_schema text?, collation_name text?, domain_catalog text?, domain_schema
        text?, domain_name text?, udt_catalog text?, udt_schema text?, udt_name text?,
        scope_catalog text?, scope_schema text?, scope_name text?, maximum_cardinality
        integer?, dtd_identifier text?, is_self_referencing text?, is_identity text?,
        identity_generation text?, identity_start text?, identity_increment text?,
        identity_maximum text?, identity_minimum text?, identity_cycle text?, is_generated
        text?, generation_expression text?, is_updatable text?
    """,
    "table_constraints": """
        constraint_catalog text?, constraint_schema text?, constraint_name text?,
        table_catalog text?, table_schema text?, table_name text?, constraint_type text?,
        is_deferrable text?, initially_deferred text?, enforced text?, nulls_distinct text?
    """,
    "key_column_usage": """
        constraint_catalog text?, constraint_schema text?, constraint_name text?,
        table_catalog text?, table_schema text?, table_name text?, column_name text?,
        ordinal_position integer?, position_in_unique_constraint integer?
    """,
}


def read_relation(schema: str, name: str, text: str) -> Relation:
    """Return a relation from its text in the form above."""
    columns, nullable = [], set()
    for position, part in enumerate(" ".join(text.split()).split(", "), 1):
        column, _, kind = part.partition(" ")
        if kind.endswith("?"):
            kind = kind[:-1]
            nullable.add(column)
        columns.append(Column(column, _type(kind), 0, position))
    return Relation(schema, name, tuple(columns), frozenset(nullable))


def _type(name: str) -> WireType:
    return Type(name)  # with the [] of an array


RELATIONS: Final[Mapping[tuple[str, str], Relation]] = {
    (schema, name): read_relation(schema, name, text)
    for schema, texts in (
        (PG_CATALOG, {**_CATALOG, **PG_CATALOG_MORE}),
        (INFORMATION_SCHEMA, {**_INFORMATION, **INFORMATION_MORE}),
    )
    for name, text in texts.items()
}
"""By schema and name."""
