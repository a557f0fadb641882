"""The places at which a query names relations to read, so that a query can stand there in their
place.

Names of WITH are none of them. A column behind the name of its table's schema loses that: what
stands in the place of the table has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from leasehold.catalog.definitions import quoted
from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import PUBLIC
from leasehold.sql.syntax.accounting import Body
from leasehold.sql.syntax.name_places import names_behind
from leasehold.sql.syntax.parsing import Parsed, parse
from leasehold.sql.syntax.statement import Reading, Words, only

_OF_TABLE: Final = 3
"""Parts of the name of a column behind its table's and its schema's."""

FindQuery = Callable[[str], str | None]
"""Returns the query that is to stand in the place of a relation, which is called as requests call
it; None: the name stays."""


class _Put(NamedTuple):
    """What is put in the place of some bytes of a text."""

    begin: int
    end: int
    words: str


def put_queries(text: str, find: FindQuery) -> str:
    """Return a query in which others, under the names that it gives them, stand in the places of
    relations. Raises what `parse` raises."""
    parsed = parse(text)
    if not parsed:
        return text
    words = Words(parsed[0].source)
    source, at = parsed[0].source.encoded, 0
    parts: list[bytes] = []
    for put in sorted({put for one in parsed for put in _find(one, words, find)}):
        parts += (source[at : put.begin], put.words.encode())
        at = put.end
    return b"".join((*parts, source[at:])).decode()


def _find(parsed: Parsed, words: Words, find: FindQuery) -> Iterator[_Put]:
    """Yield the places in one statement. Its tree may be deep: it is walked without recursion."""
    reading = Reading(parsed, words)
    left: list[tuple[str, Any, frozenset[str]]] = [(parsed.kind, parsed.body, frozenset())]
    while left:
        kind, node, hidden = left.pop()
        if isinstance(node, list):
            left += [(kind, each, hidden) for each in node]
            continue
        if not isinstance(node, dict):
            continue
        if "relname" in node:
            if "schemaname" in node or node["relname"] not in hidden:
                yield from _of_relation(reading, node, find)
            continue
        if kind == "ColumnRef":
            yield from _of_column(reading, node, find)
            continue
        if "withClause" in node:
            hidden = names_behind(node["withClause"], hidden, left)
        left += [(name, each, hidden) for name, each in node.items() if name != "withClause"]


def _of_relation(reading: Reading, node: Body, find: FindQuery) -> Iterator[_Put]:
    query = find(_called(node.get("schemaname", ""), node["relname"]))
    if query is None:
        return
    tokens, first = reading.tokens, reading.at(node.get("location", 0))
    end = reading.behind_name(first)
    # ONLY t, ONLY (t) and t * mean the same here, where no table has others below it.
    if not node.get("inh"):
        parenthesis = reading.word(first - 1) == "("
        first, end = first - 1 - parenthesis, end + parenthesis
    elif reading.word(end) == "*":
        end += 1
    named = "" if "alias" in node else f" AS {quoted(node['relname'])}"
    yield _Put(tokens[first].begin, tokens[end - 1].end, f"({query}){named}")


def _of_column(reading: Reading, node: Body, find: FindQuery) -> Iterator[_Put]:
    said = [only(each)[1].get("sval", "") for each in node["fields"]]
    if len(said) < _OF_TABLE or find(_called(said[0], said[1])) is None:
        return
    tokens, first = reading.tokens, reading.at(node.get("location", 0))
    behind = first + 1
    while tokens[behind - 1].word != ".":
        behind += 1
    yield _Put(tokens[first].begin, tokens[behind].begin, "")


def _called(schema: str, name: str) -> str:
    return qualified("" if schema == PUBLIC else schema, name)
