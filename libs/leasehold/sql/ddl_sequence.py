"""CREATE, DROP and ALTER SEQUENCE, and the options of an identity column's sequence."""

from __future__ import annotations

from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, InvalidArgument, SyntaxInvalid
from leasehold.schema.sequence import Options, Owner
from leasehold.sql.reader import Kind, Reader
from leasehold.sql.statements import (
    CreateSequence,
    DropSequence,
    OwnSequence,
    RenameSequence,
    RestartSequence,
)
from leasehold.sql.whole import whole

_TYPES: Final = {
    **dict.fromkeys(("smallint", "int2"), "smallint"),
    **dict.fromkeys(("integer", "int", "int4"), "integer"),
    **dict.fromkeys(("bigint", "int8"), "bigint"),
}
_OWNED: Final = "the sequence of an identity column is owned by that column"


def create_sequence(reader: Reader) -> CreateSequence:
    """CREATE SEQUENCE [IF NOT EXISTS] s option …"""
    reader.expect("create sequence")
    exists = reader.take("if not exists")
    position = reader.position
    name = reader.qualified_name("the sequence's name")
    return CreateSequence(name, sequence_options(reader), exists, position)


def drop_sequence(reader: Reader) -> DropSequence:
    """DROP SEQUENCE [IF EXISTS] s [CASCADE | RESTRICT]"""
    reader.expect("drop sequence")
    exists = reader.take("if exists")
    position = reader.position
    name = reader.qualified_name("the sequence's name")
    reader.refuse({",": "one DROP names one sequence: send several"})
    return DropSequence(name, exists, position, cascade=reader.cascades())


def alter_sequence(reader: Reader) -> RestartSequence | OwnSequence | RenameSequence:
    """ALTER SEQUENCE [IF EXISTS] s {RESTART [[WITH] n] | OWNED BY {t.c | NONE} | RENAME TO r}"""
    reader.expect("alter sequence")
    exists = reader.take("if exists")
    position = reader.position
    name = reader.qualified_name("the sequence's name")
    if reader.at("owned by"):
        return OwnSequence(name, owner(reader), exists, position)
    if reader.take("rename to"):
        return RenameSequence(name, reader.name("the sequence's new name"), exists, position)
    if not reader.take("restart"):
        raise FeatureNotSupported(
            "RESTART, OWNED BY and RENAME TO are supported of ALTER SEQUENCE, each by itself, and"
            " nothing else of it: drop it and make another one",
            position=reader.position,
        )
    return RestartSequence(name, restart_at(reader), exists, position)


def restart_at(reader: Reader) -> int | None:
    """[[WITH] n] behind RESTART."""
    if not reader.take("with") and not _at_number(reader):
        return None
    return _number(reader)


def sequence_options(reader: Reader, *, named: bool = False) -> Options:
    """Up to what is none. `named`: SEQUENCE NAME may be among them. Raises SyntaxInvalid,
    FeatureNotSupported, InvalidArgument (its type)."""
    found: dict[str, Any] = {}
    position = reader.position

    def once(what: str, value: Any) -> None:
        if what in found:
            raise SyntaxInvalid("conflicting or redundant options", position=reader.position)
        found[what] = value

    while True:
        if reader.take("as"):
            once("type", _type(reader))
        elif reader.take("increment"):
            reader.take("by")
            once("increment", _number(reader))
        elif reader.take("minvalue"):
            once("least", _number(reader))
        elif reader.take("maxvalue"):
            once("most", _number(reader))
        elif reader.take("no minvalue"):
            once("least", None)
        elif reader.take("no maxvalue"):
            once("most", None)
        elif reader.take("start"):
            reader.take("with")
            once("start", _number(reader))
        elif reader.take("cache"):
            once("cache", _number(reader))
        elif reader.take("no cycle"):
            once("cycles", value=False)
        elif reader.take("cycle"):
            once("cycles", value=True)
        elif named and reader.take("sequence name"):
            once("name", reader.qualified_name("the sequence's name"))
        elif reader.at("owned by"):
            reader.refuse({"owned by": _OWNED} if named else {})
            once("owner", owner(reader))
        else:
            break
    return Options(**found, position=position)


def owner(reader: Reader) -> Owner:
    """OWNED BY {[public.]t.c | NONE}"""
    reader.expect("owned by")
    position = reader.position
    if reader.take("none"):
        return Owner(position=position)
    names = [reader.name("a table's name")]
    while reader.take("."):
        names.append(reader.name("a column's name"))
    if len(names) == 1:
        raise SyntaxInvalid(
            "invalid OWNED BY option",
            hint="Specify OWNED BY table.column or OWNED BY NONE.",
            position=position,
        )
    if len(names) > 3 or (len(names) == 3 and names[0] != "public"):
        raise FeatureNotSupported(
            f"schema {names[0]!r} does not exist: a database has the schema public only",
            position=position,
        )
    return Owner(names[-2], names[-1], position)


def _type(reader: Reader) -> str:
    word, position = reader.word(), reader.position
    if word not in _TYPES:
        raise InvalidArgument(
            "sequence type must be smallint, integer, or bigint", position=position
        )
    reader.expect(word)
    return _TYPES[word]


def _at_number(reader: Reader) -> bool:
    found = reader.peek(1 if reader.word() in ("-", "+") else 0)
    return found is not None and found.kind is Kind.CONSTANT and found.text.isdecimal()


def _number(reader: Reader) -> int:
    if not _at_number(reader):
        raise reader.unexpected("a whole number is expected")
    sign = -1 if reader.take("-") else 1
    reader.take("+")
    found = reader.peek()
    assert found is not None, "it is a number"
    value, position = sign * whole(found.text), reader.position
    if not -(1 << 63) <= value < 1 << 63:
        raise InvalidArgument(f"{value} is out of range for type bigint", position=position)
    reader.advance()
    return value
