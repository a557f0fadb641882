"""Options of a sequence, behind CREATE and ALTER SEQUENCE and of an identity column."""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.sequence import Options, Owner
from leasehold.model.errors import InvalidArgument, InvalidText, SyntaxInvalid
from leasehold.sql.syntax.accounting import Body
from leasehold.sql.syntax.names import listed_name
from leasehold.sql.syntax.options import read_option
from leasehold.sql.syntax.statement import Reading, names_of, only
from leasehold.values.integers import whole

_TYPES: Final = {"int2": "smallint", "int4": "integer", "int8": "bigint"}
_NUMBERS: Final = {
    "increment": "increment",
    "minvalue": "least",
    "maxvalue": "most",
    "start": "start",
    "cache": "cache",
    "restart": "restart",
}
_NONE_SAID: Final = {"minvalue": "no_least", "maxvalue": "no_most", "restart": "restarts"}
"""What the option means without a number."""
_OWNED: Final = "the sequence of an identity column is owned by that column"


def read_sequence_options(
    reading: Reading,
    nodes: list[Any],
    word_index: int,
    *,
    named: bool = False,
    restarts: bool = False,
) -> Options:
    """Return the options, which begin at `word_index`. `named`: SEQUENCE NAME may be among them;
    `restarts`: RESTART. SET GENERATED, which an identity column has beside them, is looked at for
    being said once.

    Raises SyntaxInvalid, FeatureNotSupported, InvalidArgument (its type, a number out of range).
    """
    found: dict[str, Any] = {}
    seen: set[str] = set()
    for node in nodes:
        body = node["DefElem"]
        name = read_option(reading.source, body)
        position = reading.source.position(body["location"])
        if name in seen:
            raise SyntaxInvalid("conflicting or redundant options", position=position)
        seen.add(name)
        if (name == "restart" and not restarts) or (name == "sequence_name" and not named):
            raise SyntaxInvalid(f'sequence option "{name}" not supported here', position=position)
        if name != "generated":
            found |= _option(reading, name, body, named=named)
    return Options(**found, position=reading.position(word_index))


def only_restart(options: Options) -> Options:
    return Options(position=options.position, restarts=True, restart=options.restart)


def _option(reading: Reading, name: str, body: Body, *, named: bool) -> dict[str, Any]:
    word_index = reading.at(body["location"])
    match name:
        case "as":
            return {"type": _type(reading, body["arg"]["TypeName"])}
        case "cycle":
            return {"cycles": bool(body["arg"]["Boolean"].get("boolval"))}
        case "owned_by":
            if named:
                reading.refuse(_OWNED, word_index)
            return {"owner": _owner(reading, body["arg"], word_index + 2)}
        case "sequence_name":
            names = names_of(body["arg"]["List"]["items"])
            return {"name": listed_name(reading, names, word_index + 2)}
    if name not in _NUMBERS:
        reading.refuse(f"{name.upper()} of a sequence is not supported", word_index)
    if "arg" not in body:
        return {_NONE_SAID[name]: True}
    found: dict[str, Any] = {_NUMBERS[name]: _number(reading, body["arg"], word_index)}
    return found | {"restarts": True} if name == "restart" else found


def _owner(reading: Reading, arg: Any, word_index: int) -> Owner:
    """OWNED BY {[public.]t.c | NONE}"""
    names, position = names_of(arg["List"]["items"]), reading.position(word_index)
    if names == ("none",):
        return Owner(position=position)
    if len(names) == 1:
        raise SyntaxInvalid(
            "invalid OWNED BY option",
            hint="Specify OWNED BY table.column or OWNED BY NONE.",
            position=position,
        )
    return Owner(listed_name(reading, names[:-1], word_index), names[-1], position)


def _type(reading: Reading, body: Body) -> str:
    names = names_of(body.get("names", []))
    plain = not body.keys() & {"typmods", "arrayBounds", "setof", "pct_type"}
    if not plain or names[-1] not in _TYPES or names[:-1] not in ((), ("pg_catalog",)):
        raise InvalidArgument(
            "sequence type must be smallint, integer, or bigint",
            position=reading.source.position(body.get("location", 0)),
        )
    return _TYPES[names[-1]]


def _number(reading: Reading, node: Any, word_index: int) -> int:
    kind, body = only(node)
    if kind == "Integer":
        return int(body.get("ival", 0))
    said = body["fval"] if kind == "Float" else ""
    position = reading.position(word_index)
    sign, digits = (-1, said[1:]) if said.startswith("-") else (1, said)
    if not digits.isdecimal():
        raise InvalidText(f'invalid input syntax for type bigint: "{said:.80}"', position=position)
    value = sign * whole(digits)
    if not -(1 << 63) <= value < 1 << 63:
        raise InvalidArgument(f"{value} is out of range for type bigint", position=position)
    return value
