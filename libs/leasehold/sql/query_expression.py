"""Words → the tree of an expression, by PostgreSQL's precedence and with its syntax errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.model.errors import FeatureNotSupported, OutOfRange, SyntaxInvalid
from leasehold.sql.binding import overlaps
from leasehold.sql.interval_fields import with_fields
from leasehold.sql.precedence import (
    AND,
    COLLATION,
    COMPARISON,
    IS,
    MATCH,
    MATCHES,
    NOT,
    NOT_ASSOCIATIVE,
    OR,
    OTHER,
    PREFIX,
    SIGNS,
    ZONE,
)
from leasehold.sql.query_lexer import (
    END,
    NAME,
    NUMBER,
    OPERANDS_DEEP_MAX,
    PARAMETER,
    SIGN,
    STRING,
    WORD,
    Words,
)
from leasehold.sql.syntax.tree import (
    ArrayOf,
    ArrayQuery,
    Between,
    Binary,
    Bound,
    Call,
    Case,
    Cast,
    Collated,
    Constant,
    DefaultWord,
    Distinct,
    InList,
    Like,
    Logic,
    Name,
    Node,
    OverArray,
    Parameter,
    Quantified,
    Query,
    RowOf,
    SortKey,
    Star,
    SubQuery,
    Subscript,
    Test,
    Unary,
    Window,
)
from leasehold.sql.system_catalog.leasehold_schema import LEASEHOLD
from leasehold.sql.system_catalog.relations import SCHEMAS
from leasehold.sql.type_grammar import TYPE_WORDS, type_name
from leasehold.sql.worded_calls import WORDED
from leasehold.values.interval import FIELDS

PARAMETERS_MAX: Final = 1_000

WITHOUT_PARENTHESES: Final = frozenset(
    {
        *("current_date", "current_timestamp", "localtimestamp", "current_time", "localtime"),
        *("current_user", "session_user", "user", "current_role", "current_catalog"),
        *("current_schema",),
    }
)
_COLLATIONS: Final = frozenset({"default", "C", "POSIX", "ucs_basic"})
_BEFORE_OPERANDS: Final = frozenset({"~", "@", "|/", "||/"})
CONSTANT_TYPES: Final = frozenset(
    {
        *("date", "timestamp", "timestamptz", "time", "interval", "boolean", "bool", "uuid"),
        *("bytea", "text", "varchar", "numeric", "decimal", "jsonb", "json", "float8", "float4"),
        *("int", "int2", "int4", "int8", "integer", "bigint", "smallint", "real"),
    }
)
_AFTER_QUERY: Final = frozenset(
    {
        *(")", ";", "union", "intersect", "except", "order", "limit", "offset", "fetch"),
        *("on", "returning"),
    }
)
_NOT_BUILT: Final = {
    "xmlelement": "XML",
}


class Expressions:
    """Reads expressions from `words`; `query` reads a query, up to its end."""

    def __init__(self, words: Words, query: Callable[[], Query]) -> None:
        self.words = words
        self._query = query
        self._depth = 0
        self.parameters = 0  # the highest number met

    def expression(self, lowest: int = OR) -> Node:
        self._depth += 1
        if self._depth > OPERANDS_DEEP_MAX * 4:
            raise OutOfRange("the expression is nested too deeply", position=self.words.position)
        left = self._prefixed(lowest)
        chain = 0
        barred = 0
        while (level := self._level()) >= lowest:
            if level == barred:
                raise self.words.unexpected()
            chain += 1
            if chain > OPERANDS_DEEP_MAX and level > AND:
                raise OutOfRange(
                    f"more than {OPERANDS_DEEP_MAX} operators in a row",
                    position=self.words.position,
                )
            left = self._infix(left, level)
            barred = level if level in NOT_ASSOCIATIVE else 0
        self._depth -= 1
        return left

    def listed(self) -> tuple[Node, ...]:
        found = [self.expression()]
        while self.words.take(","):
            found.append(self.expression())
        return tuple(found)

    # ---------------------------------------------------------- operators

    def _level(self) -> int:
        found = self.words.peek()
        if found.kind == SIGN:
            text = found.text
            if text in SIGNS:
                return SIGNS[text]
            return 0 if text in "(),;.:[]::=>:=.." else OTHER
        if found.kind != WORD:
            return 0
        match found.text:
            case "or":
                return OR
            case "and":
                return AND
            case "is" | "isnull" | "notnull":
                return IS
            case "between" | "in" | "like" | "ilike" | "similar" | "overlaps":
                return MATCH
            case "not" if self.words.said(1) in MATCHES:
                return MATCH
            case "at" if self.words.at("at", "time", "zone"):
                return ZONE
            case "collate":
                return COLLATION
            case "operator" if self.words.said(1) == "(":
                return OTHER
        return 0

    def _infix(self, left: Node, level: int) -> Node:
        words = self.words
        at = words.position
        if level in (OR, AND):
            word = words.advance().text
            parts = [left, self.expression(level + 1)]
            while words.take(word):
                parts.append(self.expression(level + 1))
            return Logic(at, word, tuple(parts))
        if level == IS:
            left = self._is(left)
            while words.said() in ("is", "isnull", "notnull"):
                left = self._is(left)
            return left
        if level == MATCH:
            return self._match(left, at)
        if level == ZONE:
            words.expect("at", "time", "zone")
            return Call(at, "timezone", (self.expression(ZONE + 1), left))
        if level == COLLATION:
            return self._collated(left, at)
        sign = self._sign()
        if words.said() in ("any", "some", "all") and words.said(1) == "(":
            return self._quantified(left, sign, at)
        return Binary(at, sign, left, self.expression(level + 1))

    def _sign(self) -> str:
        """An operator's, or OPERATOR(pg_catalog.sign)."""
        words = self.words
        if not words.take("operator"):
            return words.advance().text
        words.expect("(")
        if words.take("pg_catalog"):
            words.expect(".")
        found = words.advance()
        if found.kind != SIGN:
            raise SyntaxInvalid(f"syntax error at or near {found.source!r:.80}", position=found.at)
        words.expect(")")
        return found.text

    def _collated(self, left: Node, at: int) -> Node:
        words = self.words
        words.expect("collate")
        place = words.position
        name = words.label()
        if words.take("."):
            name = words.label()
        if name not in _COLLATIONS:
            raise FeatureNotSupported(
                f"the collation {name!r} is not supported: text is ordered by its bytes, as"
                ' collation "C" does',
                position=place,
            )
        return Collated(at, left)

    def _quantified(self, left: Node, sign: str, at: int) -> Node:
        words = self.words
        every = words.advance().text == "all"
        words.expect("(")
        if self.at_query():
            query = self._query()
            words.expect(")")
            return Quantified(at, left, sign, every, query)
        array = self.expression()
        words.expect(")")
        return OverArray(at, left, sign, every, array)

    def _is(self, left: Node) -> Node:
        words, at = self.words, self.words.position
        if words.take("isnull"):
            return Test(at, left, "null", False)
        if words.take("notnull"):
            return Test(at, left, "null", True)
        words.expect("is")
        negated = words.take("not")
        if words.take("distinct", "from"):
            return Distinct(at, left, self.expression(COMPARISON), negated)
        for what in ("null", "true", "false", "unknown"):
            if words.take(what):
                return Test(at, left, what, negated)
        if words.said() in ("document", "json", "normalized", "of", "nfc", "nfd"):
            words.refuse(f"IS {words.said().upper()}")
        raise words.unexpected()

    def _match(self, left: Node, at: int) -> Node:
        words = self.words
        negated = words.take("not")
        word = words.advance().text
        if word == "overlaps":
            return overlaps.read(left, self.expression(MATCH + 1), at)
        if word == "between":
            symmetric = words.take("symmetric")
            words.take("asymmetric")
            low = self.expression(MATCH + 1)
            words.expect("and")
            return Between(at, left, low, self.expression(MATCH + 1), negated, symmetric)
        if word == "similar":
            return self._similar(left, at, negated=negated)
        if word in ("like", "ilike"):
            if words.said() in ("any", "all", "some") and words.said(1) == "(":
                sign = f"{'!' if negated else ''}~~{'*' if word == 'ilike' else ''}"
                return self._quantified(left, sign, at)
            pattern = self.expression(MATCH + 1)
            escape = self.expression(MATCH + 1) if words.take("escape") else None
            return Like(at, left, pattern, escape, negated, word == "ilike")
        words.expect("(")
        if self.at_query():
            query = self._query()
            words.expect(")")
            return Quantified(at, left, "<>" if negated else "=", negated, query)
        items = self.listed()
        words.expect(")")
        return InList(at, left, items, negated)

    def _similar(self, left: Node, at: int, *, negated: bool) -> Node:
        """As PostgreSQL reads it: a regular expression that the pattern is made to."""
        words = self.words
        words.expect("to")
        arguments = [self.expression(MATCH + 1)]
        if words.take("escape"):
            arguments.append(self.expression(MATCH + 1))
        pattern = Call(at, "similar_to_escape", tuple(arguments))
        return Binary(at, "!~" if negated else "~", left, pattern)

    def _prefixed(self, lowest: int) -> Node:
        words = self.words
        at = words.position
        if lowest <= NOT and words.take("not"):
            return Logic(at, "not", (self.expression(NOT),))
        found = words.peek()
        if found.kind == SIGN and found.text in ("-", "+"):
            words.advance()
            number = words.peek()
            if found.text == "-" and number.kind == NUMBER and words.said(1) not in ("::", "["):
                words.advance()
                return self._postfix(Constant(at, "number", f"-{number.text}"))
            return Unary(at, found.text, self.expression(PREFIX))
        if found.kind == SIGN and found.text not in ("(", "*") and found.text not in SIGNS:
            if found.text in (")", ",", ";", "]", ".", ":", "::", "["):
                raise words.unexpected()
            if found.text in _BEFORE_OPERANDS:
                words.advance()
                return Unary(at, found.text, self.expression(OTHER + 1))
            words.refuse(f"the operator {found.text} before an operand")
        indexed = found.text == "(" or found.kind == PARAMETER
        return self._postfix(self._primary(), indexed=indexed)

    def _postfix(self, node: Node, *, indexed: bool = False) -> Node:
        """`indexed`: a subscript may follow, as it may a column."""
        words = self.words
        while words.at("[") and (indexed or isinstance(node, Name | Subscript)):
            node = self._subscript(node)
        while True:
            if words.at("::"):
                at = words.position
                words.advance()
                node = Cast(at, node, type_name(words))
            elif words.at("["):
                raise words.unexpected()
            else:
                return node

    def _subscript(self, array: Node) -> Node:
        words = self.words
        at = words.position
        words.expect("[")
        low = None if words.at(":") else self.expression()
        high: Node | None = None
        is_slice = words.take(":")
        if is_slice and not words.at("]"):
            high = self.expression()
        words.expect("]")
        return Subscript(at, array, low, high, is_slice)

    def _array(self) -> Node:
        words = self.words
        at = words.position
        words.expect("array")
        if words.take("("):
            query = self._query()
            words.expect(")")
            return ArrayQuery(at, query)
        words.expect("[")
        if words.at("["):
            words.refuse("an array of more than one dimension")
        items = () if words.at("]") else self.listed()
        words.expect("]")
        return ArrayOf(at, items)

    # ---------------------------------------------------------- operands

    def _primary(self) -> Node:
        words = self.words
        found = words.peek()
        at = found.at
        match found.kind:
            case _ if found.kind == NUMBER:
                return Constant(at, "number", words.advance().text)
            case _ if found.kind == STRING:
                return Constant(at, "string", words.advance().text)
            case _ if found.kind == PARAMETER:
                return self._parameter()
            case _ if found.kind == NAME:
                return self._named()
            case _ if found.kind == WORD:
                return self._word()
        if words.at("("):
            return self._parenthesis()
        raise words.unexpected()

    def _parameter(self) -> Node:
        found = self.words.advance()
        number = int(found.text) if len(found.text) < 6 else 0
        if not 1 <= number <= PARAMETERS_MAX:
            error = SyntaxInvalid(f"there is no parameter ${found.text}", position=found.at)
            raise error
        self.parameters = max(self.parameters, number)
        return Parameter(found.at, number)

    def _parenthesis(self) -> Node:
        words = self.words
        at = words.position
        words.expect("(")
        if self.at_query():
            query = self._query()
            words.expect(")")
            return SubQuery(at, query)
        items = self.listed()
        words.expect(")")
        if words.said() == "." and len(items) == 1:
            words.refuse("a field of a value")
        return items[0] if len(items) == 1 else RowOf(at, items)

    def at_query(self, ahead: int = 0) -> bool:
        """Does a query begin there? In parentheses of its own it does when what follows them goes
        on with a query: ((SELECT 1) UNION …) does, ((SELECT 1) + 1) doesn't."""
        words = self.words
        if words.said(ahead) != "(":
            return words.said(ahead) in ("select", "values", "with", "table")
        if not self.at_query(ahead + 1):
            return False
        depth, place = 0, ahead
        while words.peek(place).kind != END:
            depth += (words.said(place) == "(") - (words.said(place) == ")")
            place += 1
            if depth == 0:
                break
        return words.peek(place).kind == END or words.said(place) in _AFTER_QUERY

    def _word(self) -> Node:
        words = self.words
        found = words.peek()
        at, text = found.at, found.text
        if text in ("null", "true", "false"):
            words.advance()
            return Constant(at, text)
        if text == "case":
            return self._case()
        if text == "default":
            words.advance()
            return DefaultWord(at)
        if text == "cast" and words.said(1) == "(":
            words.expect("cast", "(")
            operand = self.expression()
            words.expect("as")
            target = type_name(words)
            words.expect(")")
            return Cast(at, operand, target)
        if text == "exists" and words.said(1) == "(":
            words.expect("exists", "(")
            query = self._query()
            words.expect(")")
            return SubQuery(at, query, exists=True)
        if text == "row" and words.said(1) == "(":
            words.expect("row", "(")
            items = () if words.at(")") else self.listed()
            words.expect(")")
            return RowOf(at, items)
        if text in WITHOUT_PARENTHESES:
            words.advance()
            if words.at("("):
                if text != "current_schema":
                    words.refuse(f"{text.upper()} with a precision")
                words.expect("(", ")")
            return Call(at, text)
        if text in _NOT_BUILT and words.said(1) in ("(", "["):
            words.refuse(_NOT_BUILT[text])
        if text == "array" and words.said(1) in ("(", "["):
            return self._array()
        special = self._special.get(text)
        if special is not None and words.said(1) == "(":
            return special(self)
        if text in CONSTANT_TYPES or text in TYPE_WORDS:
            typed = self._typed_constant()
            if typed is not None:
                return typed
        return self._named()

    def _typed_constant(self) -> Node | None:
        """date '2024-01-01': the type's own input, which is a cast of the constant."""
        words = self.words
        length = 1
        if words.said() in TYPE_WORDS and words.said(1) in TYPE_WORDS[words.said()]:
            length = 2
        elif words.said() == "timestamp" and words.said(1) in ("with", "without"):
            length = 4
        if words.peek(length).kind != STRING:
            return None
        at = words.position
        target = type_name(words)
        found = words.advance()
        node = Cast(at, Constant(found.at, "string", found.text), target)
        if target.name == "interval" and not target.modifiers and words.said() in FIELDS:
            return with_fields(words, node, found)
        return node

    def _named(self) -> Node:
        """A column, a function's call, or all columns of a table."""
        words = self.words
        at = words.position
        parts = [self._first_name()]
        while words.at("."):
            words.advance()
            if words.take("*"):
                if len(parts) != 1:
                    words.refuse("schema.table.*")
                return Star(at, parts[0])
            parts.append(words.label())
        if words.at("("):
            if len(parts) == 2 and parts[0] == "pg_catalog":
                parts = parts[1:]
            if len(parts) == 2 and parts[0] == LEASEHOLD:
                return self.call(at, ".".join(parts))
            if len(parts) != 1:
                raise FeatureNotSupported(
                    f"functions of the schema {parts[0]!r} are not supported", position=at
                )
            return self.call(at, parts[0])
        if len(parts) == 3 and parts[0] in (*SCHEMAS, LEASEHOLD):
            parts = parts[1:]
        if len(parts) > 2:
            raise FeatureNotSupported("a name of more than two parts is not supported", position=at)
        return Name(at, tuple(parts))

    def _first_name(self) -> str:
        words = self.words
        if words.peek().kind == WORD and words.said(1) == "(" and words.said() in ("left", "right"):
            return words.advance().text
        return words.name()

    def call(self, at: int, name: str) -> Call:
        """From the parenthesis on."""
        words = self.words
        words.expect("(")
        star = distinct = False
        arguments: tuple[Node, ...] = ()
        order: tuple[SortKey, ...] = ()
        if words.take("*"):
            star = True
        elif not words.at(")"):
            if words.at("variadic"):
                words.refuse("VARIADIC")
            distinct = words.take("distinct")
            if not distinct:
                words.take("all")
            arguments = self.listed()
            if words.said() in ("=>", ":="):
                words.refuse("an argument by its name")
            order = self.order_by()
        words.expect(")")
        if words.at("within", "group"):
            words.refuse("WITHIN GROUP")
        if words.said() in ("respect", "ignore") and words.said(1) == "nulls":
            words.refuse("RESPECT or IGNORE NULLS")
        condition = None
        if words.at("filter", "("):
            words.expect("filter", "(", "where")
            condition = self.expression()
            words.expect(")")
        over = None
        if words.take("over"):
            if words.at("("):
                over = self.window()
            else:
                over = Window(words.position, words.name())
        return Call(at, name, arguments, star, distinct, order, condition, over)

    def order_by(self) -> tuple[SortKey, ...]:
        words = self.words
        if not words.take("order", "by"):
            return ()
        keys = [self._sort_key()]
        while words.take(","):
            keys.append(self._sort_key())
        return tuple(keys)

    def _sort_key(self) -> SortKey:
        words = self.words
        node = self.expression()
        descending = words.take("desc")
        if not descending:
            words.take("asc")
        if words.at("using"):
            words.refuse("ORDER BY … USING")
        first = None
        if words.take("nulls", "first"):
            first = True
        elif words.take("nulls", "last"):
            first = False
        return SortKey(node, descending, first)

    def window(self) -> Window:
        words = self.words
        at = words.position
        words.expect("(")
        base = ""
        if words.is_name() and words.said() not in ("partition", "rows", "range", "groups"):
            base = words.name()
        partition: tuple[Node, ...] = ()
        if words.take("partition", "by"):
            partition = self.listed()
        order = self.order_by()
        frame = self._frame() if words.said() in ("rows", "range", "groups") else None
        words.expect(")")
        return Window(at, base, partition, order, frame)

    def _frame(self) -> tuple[str, Bound, Bound, str]:
        words = self.words
        unit = words.advance().text
        if words.take("between"):
            start = self._frame_bound()
            words.expect("and")
            end = self._frame_bound()
        else:
            start, end = self._frame_bound(), Bound("current row")
        exclusion = ""
        if words.take("exclude"):
            for phrase in (("current", "row"), ("group",), ("ties",), ("no", "others")):
                if words.take(*phrase):
                    exclusion = " ".join(phrase)
                    break
            else:
                raise words.unexpected()
        return unit, start, end, exclusion

    def _frame_bound(self) -> Bound:
        words = self.words
        if words.take("current", "row"):
            return Bound("current row")
        offset = None if words.take("unbounded") else self.expression()
        for word in ("preceding", "following"):
            if words.take(word):
                return Bound(word if offset is not None else f"unbounded {word}", offset)
        raise words.unexpected()

    def _case(self) -> Node:
        words = self.words
        at = words.position
        words.expect("case")
        subject = None if words.at("when") else self.expression()
        branches: list[tuple[Node, Node]] = []
        while words.take("when"):
            condition = self.expression()
            words.expect("then")
            branches.append((condition, self.expression()))
        if not branches:
            raise words.unexpected()
        default = self.expression() if words.take("else") else None
        words.expect("end")
        return Case(at, subject, tuple(branches), default)

    def _reserved_call(self) -> Node:
        """COALESCE and its like, whose names are no names of columns."""
        words = self.words
        at = words.position
        return self.call(at, words.advance().text)

    def _grouping(self) -> Node:
        words = self.words
        at = words.position
        words.expect("grouping", "(")
        arguments = self.listed()
        words.expect(")")
        return Call(at, "grouping", arguments)

    _special: Final[dict[str, Callable[[Expressions], Node]]] = {
        **WORDED,
        **dict.fromkeys(("coalesce", "nullif", "greatest", "least"), _reserved_call),
        "grouping": _grouping,
    }
