"""CREATE VIEW, ALTER VIEW and DROP VIEW."""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.namespaces import qualified
from leasehold.catalog.view import read_boolean
from leasehold.model.errors import FeatureNotSupported, InvalidArgument
from leasehold.sql.ddl.drops import CASCADE
from leasehold.sql.ddl.other_objects import read_object_name
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import relation_name, schema_of
from leasehold.sql.syntax.object_statements import (
    CreateView,
    DropAbsent,
    DropView,
    ObjectKind,
    RenameView,
    RenameViewColumn,
    SetViewOptions,
)
from leasehold.sql.syntax.statement import Reading, Span, names_of, only

handles(
    "ViewStmt",
    *("view", "query", "replace", "aliases", "withCheckOption", "options"),
)
_OPTIONS: Final = ("security_barrier", "security_invoker")
_NOT_CHECKED: Final = (
    "WITH CHECK OPTION is not supported: views are only read here, write to their tables"
)
_NO_CHECK: Final = "NO_CHECK_OPTION"


def read_create_view(reading: Reading, body: Body) -> CreateView:
    """CREATE [OR REPLACE] VIEW name [(columns)] AS query"""
    reading.read("ViewStmt", body)
    if body.get("withCheckOption", _NO_CHECK) != _NO_CHECK:
        reading.refuse(_NOT_CHECKED, _last_with(reading))
    kind = reading.behind(reading.verb + 1, "or replace")
    if reading.word(kind) == "recursive":
        reading.refuse(
            "CREATE RECURSIVE VIEW is not supported: CREATE VIEW … AS WITH RECURSIVE is", kind
        )
    name = relation_name(reading, body["view"])
    first = reading.at(body["view"]["location"])
    word_index = reading.behind_name(first)
    if reading.word(word_index) == "(":
        word_index = reading.closed(word_index)
    if reading.word(word_index) == "with":
        word_index = reading.closed(word_index + 1)
    begin = word_index + 1  # behind AS
    tokens, end = reading.tokens, reading.span.end
    query = Span(begin, end)
    text = reading.source.encoded[tokens[query.first].begin : tokens[query.end - 1].end].decode()
    return CreateView(
        name,
        names_of(body.get("aliases", [])),
        text,
        bool(body.get("replace")),
        reading.position(first),
        reading.position(begin) - 1 - reading.offset,
        schema_of(reading, body["view"]),
        _read_options(reading, body.get("options", [])),
    )


def _last_with(reading: Reading) -> int:
    """The word WITH of WITH … CHECK OPTION, which is the last one."""
    words = range(reading.span.end - 1, reading.verb, -1)
    return next(index for index in words if reading.word(index) == "with")


def _read_options(reading: Reading, nodes: list[Any]) -> tuple[str, ...]:
    """Return the options of a view as PostgreSQL keeps them, name=value. Raises InvalidArgument
    (22023), FeatureNotSupported."""
    made: list[str] = []
    for node in nodes:
        option = node["DefElem"]
        name, position = option["defname"], reading.source.position(option["location"])
        if name == "check_option":
            raise FeatureNotSupported(_NOT_CHECKED, position=position)
        if name not in _OPTIONS or "defnamespace" in option:
            raise InvalidArgument(f'unrecognized parameter "{name}"', position=position)
        if any(each.partition("=")[0] == name for each in made):
            raise InvalidArgument(f'parameter "{name}" specified more than once', position=position)
        value = _value_of(option)
        if read_boolean(value) is None:
            raise InvalidArgument(
                f'invalid value for boolean option "{name}": {value}', position=position
            )
        made.append(f"{name}={value}")
    return tuple(made)


def _value_of(option: Body) -> str:
    """Return what an option is set to; alone it is true."""
    if "arg" not in option:
        return "true"
    kind, body = only(option["arg"])
    match kind:
        case "String":
            return str(body["sval"])
        case "Integer":
            return str(body.get("ival", 0))
        case "Boolean":
            return "true" if body.get("boolval") else "false"
        case "TypeName":
            return str(names_of(body["names"])[-1])
    return kind


def read_alter_view(reading: Reading, body: Body) -> SetViewOptions | None:
    """ALTER VIEW [IF EXISTS] v {SET | RESET} (…); None: another action."""
    actions = [node["AlterTableCmd"] for node in body["cmds"]]
    kinds = {"AT_SetRelOptions", "AT_ResetRelOptions"}
    if len(actions) != 1 or actions[0]["subtype"] not in kinds:
        return None
    reading.read("AlterTableStmt", body)
    (action,) = actions
    reading.read("AlterTableCmd", action)
    nodes = action["def"]["List"]["items"]
    relation = body["relation"]
    position = reading.source.position(relation["location"])
    name, exists = relation_name(reading, relation), bool(body.get("missing_ok"))
    if action["subtype"] == "AT_SetRelOptions":
        return SetViewOptions(name, _read_options(reading, nodes), (), exists, position)
    reset = tuple(node["DefElem"]["defname"] for node in nodes)
    return SetViewOptions(name, (), reset, exists, position)


def read_rename_view(reading: Reading, body: Body) -> RenameView:
    """ALTER VIEW [IF EXISTS] v RENAME TO w"""
    reading.read("RenameStmt", body)
    relation = body["relation"]
    to = qualified(schema_of(reading, relation), body["newname"])
    position = reading.source.position(relation["location"])
    return RenameView(relation_name(reading, relation), to, bool(body.get("missing_ok")), position)


def read_rename_view_column(reading: Reading, body: Body) -> RenameViewColumn:
    """ALTER VIEW [IF EXISTS] v RENAME [COLUMN] a TO b"""
    reading.read("RenameStmt", body)
    relation = body["relation"]
    return RenameViewColumn(
        relation_name(reading, relation),
        body["subname"],
        body["newname"],
        bool(body.get("missing_ok")),
        reading.source.position(relation["location"]),
    )


def read_drop_view(reading: Reading, body: Body) -> tuple[DropView | DropAbsent, ...]:
    """DROP VIEW [IF EXISTS] v, … [CASCADE | RESTRICT]: a statement for each. There is no view in
    a schema that is built in, but for public."""
    reading.read("DropStmt", body)
    exists, cascade = bool(body.get("missing_ok")), body["behavior"] == CASCADE
    spans = reading.listed(Span(reading.behind(reading.verb + 2, "if exists"), reading.span.end))
    named = [read_object_name(ObjectKind.VIEW, node) for node in body["objects"]]
    names = [each.name for each in named if not each.schema]
    read: list[DropView | DropAbsent] = []
    for each, span in zip(named, spans, strict=True):
        position = reading.position(span.first)
        if each.schema:
            read.append(DropAbsent(ObjectKind.VIEW, each, exists, position, DropView.tag))
        else:
            beside = tuple(other for other in names if other != each.name)
            read.append(DropView(each.name, exists, position, cascade, beside))
    return tuple(read)
