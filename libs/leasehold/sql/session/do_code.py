"""DO: its code, as far as migrations need it to make something only if it is not there.

What is read is the block that catches errors, IF, NULL, RAISE and statements of SQL; the rest of
PL/pgSQL is refused by name. Not libpg_query's parser of the language: it is not made for texts of
strangers, and gives no place of what it has read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NoReturn

from leasehold.model.errors import Refused, SyntaxInvalid, TooComplex, UnknownObject
from leasehold.sql.session.condition_names import CODES, OTHERS
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.left_out import BLOCKS, refuse_left_out
from leasehold.sql.syntax.positions import position_of, with_position
from leasehold.sql.syntax.procedural import (
    Branch,
    CodeBlock,
    Handler,
    If,
    Raise,
    Run,
    Step,
)
from leasehold.sql.syntax.scanning import Token, tokens_of
from leasehold.sql.syntax.session_statements import (
    Do,
    RowStatement,
    SchemaStatement,
    SessionStatement,
)
from leasehold.sql.syntax.source import Source
from leasehold.sql.syntax.statement import Reading

handles("DoStmt", "args")

Read = Callable[[str], tuple[SessionStatement, ...]]
DEPTH_MAX: Final = 20
"""Blocks and IFs within each other."""
_TEST: Final = "SELECT CAST(("
_WRITES: Final = frozenset({"insert", "update", "delete", "merge", "with"})
_LEVELS: Final = ("debug", "log", "info", "notice", "warning", "exception")
_OTHER_CODE: Final = {
    "declare": "DECLARE",
    "loop": "LOOP",
    "while": "WHILE",
    "for": "FOR",
    "foreach": "FOREACH",
    "case": "CASE",
    "execute": "EXECUTE of a text",
    "return": "RETURN",
    "get": "GET DIAGNOSTICS",
    "assert": "ASSERT",
    "exit": "EXIT",
    "continue": "CONTINUE",
    "call": "CALL",
    "open": "OPEN",
    "fetch": "FETCH",
    "move": "MOVE",
    "close": "CLOSE",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "<<": "a label",
}


def read_do(reading: Reading, body: Body, read: Read) -> Do:
    """Read DO. `read` reads a text of SQL. Raises FeatureNotSupported for what is not known of the
    language, or another one, SyntaxInvalid, and what `read` raises."""
    reading.read("DoStmt", body)
    code, language = "", "plpgsql"
    for node in body.get("args", []):
        option = node["DefElem"]
        value = option["arg"]["String"].get("sval", "")
        if option["defname"] == "as":
            code = value
        else:
            language = value
    at = reading.position(reading.verb)
    if language != "plpgsql":
        refuse_left_out(BLOCKS, at, f"language {language!r:.80}: ")
    begin = _find_code(reading, code)
    try:
        return Do(_Code(code, read, begin).read(), is_placed=begin is not None)
    except Refused as error:
        if begin is None:  # its text is written otherwise than it is meant
            raise with_position(error, at) from None
        if "position" in error.detail:
            raise with_position(error, position_of(error) + begin) from None
        raise


def _find_code(reading: Reading, code: str) -> int | None:
    """Return how many characters of the statement's source stand before the code; None: it is not
    written as it is meant."""
    span = reading.span
    for token in reading.tokens[span.first : span.end]:
        written = reading.source.written(token.begin, token.end)
        mark = written[: written.find("$", 1) + 1] if written.startswith("$") else "'"
        if written == f"{mark}{code}{mark}":
            return reading.source.character(token.begin) + len(mark)
    return None


class _Code:
    """A text of code, word by word. Places are in the text; `offset`: of the text in its source."""

    def __init__(self, code: str, read: Read, offset: int | None) -> None:
        self._source = Source(code)
        self._tokens = tokens_of(self._source)
        self._read_sql = read
        self._offset = offset or 0
        self._at = 0

    def read(self) -> CodeBlock:
        """Read all of it."""
        if self._word == "declare" or self._word == "<<":
            self._refuse_code()
        self._take("begin")
        block = self._block(0)
        self._skip(";")
        if self._at < len(self._tokens):
            self._fail()
        return block

    # ------------------------------------------------------------ words

    @property
    def _token(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    @property
    def _word(self) -> str:
        token = self._token
        return "" if token is None or token.quoted else token.word

    def _skip(self, *words: str) -> bool:
        if self._word in words:
            self._at += 1
            return True
        return False

    def _take(self, *words: str) -> None:
        for word in words:
            if not self._skip(word):
                self._fail()

    @property
    def _position(self) -> int:
        token = self._token
        end = len(self._source.encoded)
        return self._source.position(end if token is None else token.begin)

    def _fail(self) -> NoReturn:
        token = self._token
        if token is None:
            raise SyntaxInvalid("syntax error at end of input", position=self._position)
        written = self._source.written(token.begin, token.end)
        raise SyntaxInvalid(f'syntax error at or near "{written:.80}"', position=self._position)

    def _refuse_code(self, what: str = "") -> NoReturn:
        said = what or _OTHER_CODE.get(self._word, self._word.upper())
        refuse_left_out(BLOCKS, self._position, f"{said:.80} in DO: ")

    # ------------------------------------------------------------ code

    def _block(self, depth: int) -> CodeBlock:
        """Read a block behind its BEGIN."""
        body = self._steps(depth, "exception", "end")
        handlers: list[Handler] = []
        if self._skip("exception"):
            while self._skip("when"):
                conditions = self._conditions()
                handlers.append(Handler(conditions, self._steps(depth, "when", "end")))
            if not handlers:
                self._fail()
        self._take("end")
        return CodeBlock(body, tuple(handlers))

    def _conditions(self) -> tuple[str, ...]:
        found = [self._condition()]
        while self._skip("or"):
            found.append(self._condition())
        self._take("then")
        return tuple(found)

    def _condition(self) -> str:
        if self._skip("sqlstate"):
            return self._text()
        token = self._token
        if token is None or not (token.is_name or token.keyword):
            self._fail()
        name = token.name
        if name != OTHERS and name not in CODES:
            raise UnknownObject(
                f'unrecognized exception condition "{name:.80}"', position=self._position
            )
        self._at += 1
        return CODES.get(name, OTHERS)

    def _text(self) -> str:
        """Read a constant in single quotes."""
        token = self._token
        if token is None or not token.word.startswith("'"):
            self._fail()
        self._at += 1
        return token.word[1:-1].replace("''", "'")

    def _steps(self, depth: int, *ends: str) -> tuple[Step, ...]:
        """Read steps up to one of these words, which is not read."""
        if depth > DEPTH_MAX:
            raise TooComplex(
                f"code in DO is nested deeper than {DEPTH_MAX}", position=self._position
            )
        found: list[Step] = []
        while self._word not in ends:
            if self._token is None:
                self._fail()
            step = self._step(depth)
            if step is not None:
                found.append(step)
        return tuple(found)

    def _step(self, depth: int) -> Step | None:
        word = self._word
        if word in _OTHER_CODE or self._assigns():
            self._refuse_code("" if word in _OTHER_CODE else "an assignment")
        if word == "null":
            self._at += 1
            self._take(";")
            return None
        if word == "begin":
            self._at += 1
            block = self._block(depth + 1)
            self._take(";")
            return block
        if word == "if":
            return self._if(depth)
        if word == "raise":
            return self._raise()
        return self._sql()

    def _assigns(self) -> bool:
        following = self._tokens[self._at + 1 : self._at + 2]
        return bool(following) and following[0].word in (":=", "=")

    def _if(self, depth: int) -> If:
        branches: list[Branch] = []
        otherwise: tuple[Step, ...] = ()
        self._take("if")
        while True:
            test = self._test()
            steps = self._steps(depth + 1, "elsif", "elseif", "else", "end")
            branches.append(Branch(test, steps))
            if not self._skip("elsif", "elseif"):
                break
        if self._skip("else"):
            otherwise = self._steps(depth + 1, "end")
        self._take("end", "if", ";")
        return If(tuple(branches), otherwise)

    def _test(self) -> SessionStatement:
        """Read a condition and THEN; one of a CASE within it belongs to that."""
        first, cases = self._at, 0
        while self._word != "then" or cases:
            if self._token is None or self._word == ";":
                self._fail()
            cases += (self._word == "case") - (self._word == "end")
            self._at += 1
        if self._at == first:
            self._fail()
        begin, end = self._tokens[first].begin, self._tokens[self._at - 1].end
        self._at += 1
        said = f"{_TEST}{self._source.written(begin, end)}) AS boolean)"
        return self._statement(said, begin, len(_TEST))

    def _raise(self) -> Raise:
        self._take("raise")
        if self._skip(";"):
            return Raise("exception")
        level = "exception"
        if self._word in _LEVELS:
            level = self._word
            self._at += 1
        token = self._token
        if token is None or not token.word.startswith("'"):
            self._refuse_code("RAISE of a condition")
        words = self._text()
        if self._word in (",", "using"):
            self._refuse_code("RAISE with values")
        if "%" in words.replace("%%", ""):
            raise SyntaxInvalid("too few parameters specified for RAISE", position=self._position)
        self._take(";")
        return Raise(level, words.replace("%%", "%"))

    # ------------------------------------------------------------ SQL

    def _sql(self) -> Run:
        """Read a statement up to its semicolon."""
        first, depth = self._at, 0
        performs = self._word == "perform"
        while (token := self._token) is not None and (token.word != ";" or depth):
            depth += (token.word == "(") - (token.word == ")")
            self._at += 1
        if token is None or (performs and self._at == first + 1):
            self._fail()
        begin, end = self._tokens[first + performs].begin, self._tokens[self._at - 1].end
        self._at += 1
        said = self._source.written(begin, end)
        if performs:
            return Run(self._statement(f"SELECT {said}", begin, len("SELECT ")), performs=True)
        statement = self._statement(said, begin, 0)
        self._check(statement, first)
        return Run(statement)

    def _check(self, statement: SessionStatement, first: int) -> None:
        """Refuse what is no statement of code."""
        meaning = statement.meaning
        if isinstance(meaning, SchemaStatement) and not meaning.explains:
            return
        if isinstance(meaning, RowStatement) and meaning.verb in _WRITES:
            return
        self._at = first
        if isinstance(meaning, RowStatement) and meaning.verb in ("select", "(", "table", "values"):
            raise SyntaxInvalid(
                "query has no destination for result data",
                hint="If you want to discard the results of a SELECT, use PERFORM instead.",
                position=self._position,
            )
        self._refuse_code()

    def _statement(self, text: str, begin: int, before: int) -> SessionStatement:
        """Read a statement of SQL that stands at `begin` of the code, behind `before` characters of
        ours."""
        at = self._source.character(begin) - before
        try:
            found = self._read_sql(text)
        except Refused as error:
            if "position" not in error.detail:
                raise
            raise with_position(error, max(position_of(error) + at, 1)) from None
        if len(found) != 1:
            raise SyntaxInvalid("one statement is expected here", position=at + 1)
        (statement,) = found
        return replace(statement, offset=statement.offset + at + self._offset)
