"""CREATE, DROP and ALTER SEQUENCE, and the options of an identity column's sequence."""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.sequence import Options, Owner
from leasehold.model.errors import FeatureNotSupported, InvalidArgument, SyntaxInvalid
from leasehold.sql.reader import Kind, Reader
from leasehold.sql.syntax.statements import (
    AlterIdentity,
    AlterSequence,
    CreateSequence,
    DropSequence,
    OwnSequence,
    RenameSequence,
    RestartIdentity,
    RestartSequence,
    SetIdentity,
)
from leasehold.values.integers import whole

_TYPES: Final = {
    **dict.fromkeys(("smallint", "int2"), "smallint"),
    **dict.fromkeys(("integer", "int", "int4"), "integer"),
    **dict.fromkeys(("bigint", "int8"), "bigint"),
}
_OTHER_CHANGES: Final = {
    "owner to": "a database has one owner",
    "set": "a sequence stays in the schema public, and is always logged",
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


def alter_sequence(
    reader: Reader,
) -> RestartSequence | OwnSequence | RenameSequence | AlterSequence:
    """ALTER SEQUENCE [IF EXISTS] s {option … | RENAME TO r}; RESTART and OWNED BY {t.c | NONE} are
    options."""
    reader.expect("alter sequence")
    exists = reader.take("if exists")
    position = reader.position
    name = reader.qualified_name("the sequence's name")
    if reader.take("rename to"):
        return RenameSequence(name, reader.name("the sequence's new name"), exists, position)
    reader.refuse(_OTHER_CHANGES)
    options = sequence_options(reader, restarts=True)
    if options == Options(position=options.position):
        raise reader.unexpected("an option of a sequence is expected, or RENAME TO")
    owning = options.owner
    if owning is not None and options == Options(position=options.position, owner=owning):
        return OwnSequence(name, owning, exists, position)
    if options == restart_alone(options):
        return RestartSequence(name, options.restart, exists, position)
    return AlterSequence(name, options, exists, position)


def restart_alone(options: Options) -> Options:
    return Options(position=options.position, restarts=True, restart=options.restart)


def restart_at(reader: Reader) -> int | None:
    """[[WITH] n] behind RESTART."""
    if not reader.take("with") and not _at_number(reader):
        return None
    return _number(reader)


def sequence_options(reader: Reader, *, named: bool = False, restarts: bool = False) -> Options:
    """Up to what is none. `named`: SEQUENCE NAME may be among them; `restarts`: RESTART. Raises
    SyntaxInvalid, FeatureNotSupported, InvalidArgument (its type)."""
    found = Said(reader)
    position = reader.position
    while found.take_bounds() or found.take_other(named=named, restarts=restarts):
        pass
    return Options(**found.options, position=position)


class Said:
    """Options as they are read, each once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seen: set[str] = set()
        self._position = reader.position
        self.options: dict[str, Any] = {}

    def once(self, what: str, value: Any, *, name: str = "") -> None:
        """`name`: of the field, where it is not what may be said once."""
        if what in self._seen:
            raise SyntaxInvalid("conflicting or redundant options", position=self._position)
        self._seen.add(what)
        self.options[name or what] = value

    def take_bounds(self) -> bool:
        """What an identity column may SET of its sequence, too."""
        reader = self._reader
        self._position = reader.position
        if reader.take("increment"):
            reader.take("by")
            self.once("increment", _number(reader))
        elif reader.take("minvalue"):
            self.once("least", _number(reader))
        elif reader.take("maxvalue"):
            self.once("most", _number(reader))
        elif reader.take("no minvalue"):
            self.once("least", value=True, name="no_least")
        elif reader.take("no maxvalue"):
            self.once("most", value=True, name="no_most")
        elif reader.take("start"):
            reader.take("with")
            self.once("start", _number(reader))
        elif reader.take("cache"):
            self.once("cache", _number(reader))
        elif reader.take("no cycle"):
            self.once("cycles", value=False)
        elif reader.take("cycle"):
            self.once("cycles", value=True)
        else:
            return False
        return True

    def take_restart(self) -> bool:
        if not self._reader.take("restart"):
            return False
        self.once("restarts", value=True)
        self.options["restart"] = restart_at(self._reader)
        return True

    def take_other(self, *, named: bool, restarts: bool) -> bool:
        reader = self._reader
        if reader.take("as"):
            self.once("type", _type(reader))
        elif restarts and self.take_restart():
            pass
        elif named and reader.take("sequence name"):
            self.once("name", reader.qualified_name("the sequence's name"))
        elif reader.at("owned by"):
            reader.refuse({"owned by": _OWNED} if named else {})
            self.once("owner", owner(reader))
        else:
            return False
        return True


def identity_options(
    reader: Reader, column: str, position: int
) -> SetIdentity | RestartIdentity | AlterIdentity:
    """SET GENERATED …, SET option, RESTART [[WITH] n]: behind ALTER COLUMN c, one or more."""
    found, place, identity = Said(reader), reader.position, ""
    while True:
        if reader.take("set generated"):
            found.once("generated", "a" if reader.take("always") else _by_default(reader))
            identity = found.options.pop("generated")
        elif reader.at("set") and not reader.at("set not null"):
            reader.expect("set")
            _refuse_here(reader)
            if not found.take_bounds():
                raise reader.unexpected("GENERATED, or an option of a sequence is expected")
        elif not found.take_restart():
            break
    options = Options(**found.options, position=place)
    if options == Options(position=place):
        return SetIdentity(column, identity, position)
    if not identity and options == restart_alone(options):
        return RestartIdentity(column, options.restart, position)
    return AlterIdentity(column, options, identity, position)


def _by_default(reader: Reader) -> str:
    reader.expect("by default")
    return "d"


def _refuse_here(reader: Reader) -> None:
    for words, name in (("as", "as"), ("restart", "restart"), ("owned by", "owned_by")):
        if reader.at(words):
            raise SyntaxInvalid(
                f'sequence option "{name}" not supported here', position=reader.position
            )


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
