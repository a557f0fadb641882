"""The functions by which PostgreSQL reads and writes values of its types: clients that load types
join them by their numbers, or look a type up by them. Nobody can call them here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from leasehold.sql.system_catalog import oids
from leasehold.values.declared import BY_NAME as TYPES
from leasehold.values.declared import ENUM

_CSTRING: Final = 2275
_INTERNAL: Final = 2281
_ANYARRAY: Final = 2277
_INTERNAL_LANGUAGE: Final = 12
_NUMBERS: Final = """
    boolean bool 1242 1243 2436 2437
    bytea bytea 1244 31 2412 2413
    "char" char 1245 33 2434 2435
    name name 34 35 2422 2423
    bigint int8 460 461 2408 2409
    smallint int2 38 39 2404 2405
    integer int4 42 43 2406 2407
    text text 46 47 2414 2415
    oid oid 1798 1799 2418 2419
    json json_ 321 322 323 324
    real float4 200 201 2424 2425
    double-precision float8 214 215 2426 2427
    char bpchar 1044 1045 2430 2431
    varchar varchar 1046 1047 2432 2433
    date date_ 1084 1085 2468 2469
    inet inet_ 910 911 2496 2497
    cidr cidr_ 1267 1427 2498 2499
    time time_ 1143 1144 2470 2471
    timetz timetz_ 1350 1351 2472 2473
    timestamp timestamp_ 1312 1313 2474 2475
    timestamptz timestamptz_ 1150 1151 2476 2477
    interval interval_ 1160 1161 2478 2479
    numeric numeric_ 1701 1702 2460 2461
    uuid uuid_ 2952 2953 2961 2962
    jsonb jsonb_ 3806 3804 3805 3803
    void void_ 2298 2299 3120 3121
    record record_ 2290 2291 2402 2403
    int2vector int2vector 40 41 2410 2411
    oidvector oidvector 54 55 2420 2421
    regproc regproc 44 45 2444 2445
    regprocedure regprocedure 2212 2213 2446 2447
    regoper regoper 2214 2215 2448 2449
    regoperator regoperator 2216 2217 2450 2451
    regclass regclass 2218 2219 2452 2453
    regtype regtype 2220 2221 2454 2455
    regnamespace regnamespace 4084 4085 4087 4088
    regrole regrole 4098 4092 4094 4095
    [] array_ 750 751 2400 2401
    enum enum_ 3506 3507 3532 3533
"""
"""A type, how the names of its functions begin, and their numbers: input, output, receive, send."""
_WITH_MODIFIER: Final = frozenset(
    {
        *("bpchar", "varchar", "timestamp_", "timestamptz_", "interval_", "numeric_", "record_"),
        *("time_", "timetz_", "array_"),
    }
)
"""Those that are told the element's type and the modifier as well."""
_MORE: Final = (TYPES["oid"].oid, TYPES["integer"].oid)


class TypeFunction(NamedTuple):
    """A function with the numbers of its arguments' types and of its result's."""

    oid: int
    name: str
    arguments: tuple[int, ...]
    result: int


def _made() -> Iterator[tuple[str, tuple[TypeFunction, ...]]]:
    for line in _NUMBERS.strip().splitlines():
        kind, stem, *numbers = line.split()
        kind = kind.replace("-", " ")
        own = {"[]": _ANYARRAY, ENUM.name: ENUM.oid}.get(kind) or TYPES[kind].oid
        more = _MORE if stem in _WITH_MODIFIER else _MORE[: int(kind == ENUM.name)]
        signatures = (
            ("in", (_CSTRING, *more), own),
            ("out", (own,), _CSTRING),
            ("recv", (_INTERNAL, *more), own),
            ("send", (own,), TYPES["bytea"].oid),
        )
        yield (
            kind,
            tuple(
                TypeFunction(int(number), f"{stem}{end}", arguments, result)
                for number, (end, arguments, result) in zip(numbers, signatures, strict=True)
            ),
        )


_HANDLERS: Final = (
    TypeFunction(3, "heap_tableam_handler", (_INTERNAL,), 269),
    TypeFunction(330, "bthandler", (_INTERNAL,), 325),
)
"""Those by which pg_am names what keeps tables and indexes."""
_OF_TYPE: Final[Mapping[str, tuple[TypeFunction, ...]]] = dict(_made())
BY_OID: Final[Mapping[int, TypeFunction]] = {
    function.oid: function for of_type in (*_OF_TYPE.values(), _HANDLERS) for function in of_type
}
BY_NAME: Final[Mapping[str, TypeFunction]] = {f.name: f for f in BY_OID.values()}
_COLUMNS: Final = ("typinput", "typoutput", "typreceive", "typsend")


def columns_of(kind: str) -> Mapping[str, int]:
    """Return what pg_type says of a type's functions; of all arrays for "[]"."""
    return {column: f.oid for column, f in zip(_COLUMNS, _OF_TYPE[kind], strict=True)}


def function_rows() -> Iterator[Mapping[str, Any]]:
    """Give the rows of pg_proc, which are the same in every database."""
    for each in BY_OID.values():
        yield {
            "oid": each.oid,
            "proname": each.name,
            "pronamespace": oids.CATALOG_NAMESPACE,
            "proowner": oids.OWNER,
            "prolang": _INTERNAL_LANGUAGE,
            "procost": 1.0,
            "prokind": "f",
            "proisstrict": 1,
            "provolatile": "i",
            "proparallel": "s",
            "pronargs": len(each.arguments),
            "prorettype": each.result,
            "proargtypes": each.arguments,
            "prosrc": each.name,
        }
