"""DO as a statement of a session: its statements are run as the session's own, one after the other,
and what fails is undone as far as a block of the code that catches it has begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from leasehold.model.errors import CodeRaised, NothingHandled, Refused, SyntaxInvalid
from leasehold.pgwire.session import Notice, Portal
from leasehold.replica.replay_log import Types
from leasehold.sql.session.condition_names import is_caught
from leasehold.sql.syntax.procedural import CodeBlock, If, Raise, Run, Step, statements_in
from leasehold.sql.syntax.session_statements import Do, SchemaStatement, SessionStatement
from leasehold.sql_session.portals import CommandPortal
from leasehold.sql_session.prepared import Answer, PreparedStatement
from leasehold.sql_session.schema_statements import SchemaStatements
from leasehold.sql_session.session_mark import SessionMark, go_back_to, mark_session
from leasehold.sql_session.statement_batch import SeveralStatements
from leasehold.sql_session.statement_runner import StatementRunner

PORTION: Final = 1_000
"""Rows that are taken at once, of those that nobody wants."""
_SHOWN: Final = {"info": "00000", "notice": "00000", "warning": "01000"}
"""The levels of RAISE that a client is shown, with their SQLSTATE."""


class CodeBlocks:
    """The DO statements of one session."""

    def __init__(
        self,
        runner: StatementRunner,
        changes: SchemaStatements,
        prepare: Callable[[SessionStatement, Types], PreparedStatement],
    ) -> None:
        """Run statements of code as `prepare` has them run; `changes` are the session's."""
        self._runner, self._changes, self._prepare = runner, changes, prepare

    def prepare(self, statement: SessionStatement, types: Types) -> PreparedStatement:
        """Prepare one. What is wrong with its statements is said when they run."""
        return PreparedStatement(statement, types, (), None, self._open)

    def _open(self, prepared: PreparedStatement, values: Sequence[Any]) -> Portal:
        return CommandPortal(lambda: self._do(prepared.statement))

    def _do(self, statement: SessionStatement) -> Answer:
        said = statement.meaning
        assert isinstance(said, Do)
        runner, state = self._runner, self._runner.state
        runner.running.check_may_block()
        runner.transactions.answer_held = False  # no count of a statement's is its answer
        statements = tuple(statements_in((said.block,)))
        changes = [each for each in statements if isinstance(each.meaning, SchemaStatement)]
        is_one = len(statements) == len(changes) == 1
        alone = state.is_idle and not state.has_several
        kept = self._changes.several
        # ⚠ One schema change is a transaction by itself, in which all of them are possible and
        # which is nothing if it fails. What is more is one transaction to the end of its batch.
        if alone and not is_one:
            state.has_several = True
            self._changes.several = SeveralStatements(statement.text, (statement,))
        try:
            self._run_block(said.block, undoes=not (alone and is_one))
        except Refused as error:
            if not said.is_placed:
                error.detail = {k: v for k, v in error.detail.items() if k != "position"}
            raise
        finally:
            self._changes.several = kept
        return Answer("DO")

    def _run_block(self, block: CodeBlock, *, undoes: bool, handled: Refused | None = None) -> None:
        """Run a block. `undoes`: it is a part of a transaction; `handled`: what the block around it
        has caught."""
        if not block.handlers:
            self._run_steps(block.body, undoes, handled)
            return
        mark = mark_session(self._runner.state, self._runner.transactions) if undoes else None
        try:
            self._run_steps(block.body, undoes, handled)
        except Refused as error:
            for handler in block.handlers:
                if any(is_caught(error.sqlstate, each) for each in handler.conditions):
                    self._go_back(mark)
                    self._run_steps(handler.body, undoes, error)
                    return
            raise

    def _run_steps(self, steps: Sequence[Step], undoes: bool, handled: Refused | None) -> None:
        for step in steps:
            match step:
                case Run(statement, performs):
                    self._run(statement, performs=performs)
                case CodeBlock():
                    self._run_block(step, undoes=undoes, handled=handled)
                case Raise(level, words):
                    self._raise(level, words, handled)
                case If(branches, otherwise):
                    chosen = (b.body for b in branches if self._is_true(b.test))
                    self._run_steps(next(chosen, otherwise), undoes, handled)

    def _raise(self, level: str, words: str, handled: Refused | None) -> None:
        if level == "exception":
            if not words and handled is not None:
                raise handled
            if not words:
                raise NothingHandled(
                    "RAISE without parameters cannot be used outside an exception handler"
                )
            raise CodeRaised(words)
        if level in _SHOWN:
            notice = Notice(level.upper(), _SHOWN[level], words)
            self._runner.state.settings.reports.append(notice)

    # ------------------------------------------------------------ statements

    def _run(self, statement: SessionStatement, *, performs: bool) -> None:
        prepared = self._prepare(statement, ())
        if prepared.columns and not performs:
            raise SyntaxInvalid("query has no destination for result data")
        for _ in self._fetched(prepared):
            pass

    def _is_true(self, test: SessionStatement) -> bool:
        """Return whether a condition is true; NULL is not."""
        found = list(self._fetched(self._prepare(test, ())))
        return bool(found[0][0])

    def _fetched(self, prepared: PreparedStatement) -> Iterator[Sequence[Any]]:
        portal = prepared.open(prepared, ())
        try:
            while True:
                fetched = portal.fetch(PORTION)
                yield from fetched.rows
                if fetched.tag is not None:
                    return
        finally:
            portal.close()

    # ------------------------------------------------------------ ways back

    def _go_back(self, mark: SessionMark | None) -> None:
        """Undo what was done since; None: all of a transaction that was nothing but what failed."""
        state, transactions = self._runner.state, self._runner.transactions
        if mark is None:
            transactions.end(committed=False)
            return
        if transactions.transaction() is mark.transaction:
            go_back_to(mark, state, transactions)
        # Else a change that no block can hold has ended it, and its client was told so.
