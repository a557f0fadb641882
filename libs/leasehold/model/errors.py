"""One tree of errors; each leaf says what a caller may do about it.

    LeaseholdError
    ├── ConfigurationError        a setting is missing or wrong (F0000)
    ├── Refused                   the system decided: no. Definite; nothing of it was applied
    │   ├── MalformedRequest      08P01    ├── NotNullViolation   23502
    │   ├── UnknownTable          42P01    ├── DuplicateKey       23505
    │   ├── UnknownColumn         42703    ├── RequestTooLarge    54000
    │   ├── WrongType             42804    ├── RequestExpired     LH001
    │   ├── InvalidText           22P02    ├── RequestFromFuture  LH002
    │   ├── OutOfRange            22003    ├── AttemptOutOfTurn   LH003
    │   ├── TooLong               22001    ├── DivisionByZero     22012
    │   ├── UnknownVersion        22023    ├── DuplicateObject    42P07
    │   │                                  │   └── DuplicateConstraint 42710
    │   ├── FeatureNotSupported   0A000    ├── TableBusy          55006
    │   ├── SyntaxInvalid         42601    ├── UnknownJob         42704
    │   ├── DuplicateColumn       42701    ├── WrongJobState      55000
    │   ├── InvalidObject         42P17    ├── GeneratedAlways    428C9
    │   ├── NotGenerated          55000    ├── UnknownFunction    42883
    │   ├── AmbiguousFunction     42725    ├── CannotCast         42846
    │   ├── InvalidMoment         22007    ├── MomentOutOfRange   22008
    │   ├── InvalidArgument       22023    ├── UntranslatableCharacter 22P05
    │   ├── AmbiguousColumn       42702    ├── DuplicateAlias     42712
    │   ├── GroupingError         42803    ├── WindowingError     42P20
    │   ├── InvalidColumnReference 42P10   ├── InvalidRecursion   42P19
    │   ├── TooManyRows           21000    ├── InvalidFrame       22013
    │   ├── InvalidLimit          2201W    ├── InvalidOffset      2201X
    │   ├── TooComplex            54001    ├── QueryCanceled      57014
    │   │                                  │   └── CanceledUnderWay: indefinite, it was sent already
    │   ├── IndeterminateType     42P18    ├── WrongObject        42809
    │   ├── SequenceExhausted     2200H    ├── NoNumberYet        55000
    │   ├── WrongIdentity         55000    ├── CannotChange       55P02
    │   ├── UnknownRole           42704    ├── InvalidGrant       0LP01
    │   ├── InternalFailure       XX000: a defect met this one request; nothing was applied
    │   ├── VerifyError           40001 (replay allowed)
    │   ├── StaleVersion          40001 (replay allowed)
    │   ├── Uncommittable         40000 (final: it would be refused each time)
    │   └── GaveUp                40001 (final: attempts are used up)
    ├── NotCoherent               57P03: this replicant may not answer reads now
    ├── NoMaster                  57P03: nobody decides at the moment
    ├── OutcomeUnknown            08007: indefinite; ask again with the same request id (T5)
    ├── LedgerUnavailable         58030: Redis can't be reached; schema changes wait
    ├── BusUnavailable            58030: Kafka can't be reached
    ├── NodeUnreachable           08001: no node answers on its port for SQL
    ├── SnapshotUnavailable       58030: no whole copy of a store could be had from a node
    ├── LogStopped                XX001: the log contradicts what this reader has read (L1, L2)
    ├── StoreUnwritable           58030: the store's disk is full, or refuses to write
    └── StoreCorrupted            XX001: the store contradicts the log or itself

`definite` is True when the caller may conclude that nothing was applied; a definite error is never
raised under indefinite conditions (T5). `replayable` is True when running the work again on newer
data can succeed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class LeaseholdError(Exception):
    """Root of the tree. `detail` names the objects concerned (table, column, key, job …)."""

    sqlstate: ClassVar[str] = "XX000"
    definite: ClassVar[bool] = True
    replayable: ClassVar[bool] = False

    def __init__(self, message: str, **detail: object) -> None:
        super().__init__(message)
        self.message = message
        self.detail: Mapping[str, object] = detail


class ConfigurationError(LeaseholdError):
    sqlstate = "F0000"


class Refused(LeaseholdError):
    """A decided "no" about one request. Its code and words travel to whoever asked."""


class MalformedRequest(Refused):
    sqlstate = "08P01"


class InsufficientPrivilege(Refused):
    sqlstate = "42501"


class InvalidGrant(Refused):
    """A GRANT that would go round in a circle, or to whom it can't be given."""

    sqlstate = "0LP01"


class UnknownRole(Refused):
    sqlstate = "42704"


class UnknownSchema(Refused):
    sqlstate = "3F000"


class UnknownTable(Refused):
    sqlstate = "42P01"


class UnknownColumn(Refused):
    sqlstate = "42703"


class WrongType(Refused):
    sqlstate = "42804"


class InvalidText(Refused):
    sqlstate = "22P02"


class UntranslatableCharacter(Refused):
    """A character that text can't hold: U+0000."""

    sqlstate = "22P05"


class OutOfRange(Refused):
    sqlstate = "22003"


class InvalidMoment(Refused):
    """Text that is no date, time or interval."""

    sqlstate = "22007"


class MomentOutOfRange(Refused):
    """A field of a date or time, or what was computed from one, is out of its range."""

    sqlstate = "22008"


class InvalidLogarithm(Refused):
    sqlstate = "2201E"


class InvalidPower(Refused):
    sqlstate = "2201F"


class InvalidEscapeSequence(Refused):
    """A LIKE pattern that ends in its escape character, or an ESCAPE of more than one."""

    sqlstate = "22025"


class InvalidSubstring(Refused):
    """A negative length."""

    sqlstate = "22011"


class NullNotAllowed(Refused):
    """A function met NULL where it can't be: format's %I."""

    sqlstate = "22004"


class InvalidRegularExpression(Refused):
    sqlstate = "2201B"


class UnknownFunction(Refused):
    """No function or operator of that name takes arguments of these types."""

    sqlstate = "42883"


class AmbiguousFunction(Refused):
    """More than one function or operator would do."""

    sqlstate = "42725"


class CannotCast(Refused):
    sqlstate = "42846"


class TooLong(Refused):
    sqlstate = "22001"


class DivisionByZero(Refused):
    sqlstate = "22012"


class UnknownVersion(Refused):
    """The request names a descriptor version that does not exist (yet)."""

    sqlstate = "22023"


class IntervalOverflow(Refused):
    """A field of an interval's text has no room."""

    sqlstate = "22015"


class InvalidArgument(Refused):
    """A value that a function, a type's modifier or a setting does not take."""

    sqlstate = "22023"


class FeatureNotSupported(Refused):
    sqlstate = "0A000"


class SyntaxInvalid(Refused):
    sqlstate = "42601"


class NotNullViolation(Refused):
    sqlstate = "23502"


class DuplicateKey(Refused):
    sqlstate = "23505"


class CheckViolation(Refused):
    sqlstate = "23514"


class ForeignKeyViolation(Refused):
    sqlstate = "23503"


class InvalidForeignKey(Refused):
    """What a foreign key refers to is not unique, or not of its types."""

    sqlstate = "42830"


class RequestTooLarge(Refused):
    """The composed record of this one request can never fit (L8)."""

    sqlstate = "54000"


class RequestExpired(Refused):
    """The id's own time lies before the horizon up to which outcomes are remembered (L5)."""

    sqlstate = "LH001"


class RequestFromFuture(Refused):
    """The id's own time lies ahead of the commit clock by more than the bound (L5)."""

    sqlstate = "LH002"


class AttemptOutOfTurn(Refused):
    """Attempt n was refused before and only n + 1 can be decided (L5)."""

    sqlstate = "LH003"
    replayable = True


class DuplicateObject(Refused):
    sqlstate = "42P07"


class DuplicateConstraint(DuplicateObject):
    sqlstate = "42710"


class DuplicateColumn(Refused):
    sqlstate = "42701"


class UnknownObject(Refused):
    """An index, a constraint or a job that does not exist."""

    sqlstate = "42704"


class InvalidDefinition(Refused):
    """A table would be left without something that it needs."""

    sqlstate = "42P16"


class InvalidObject(Refused):
    """An expression that is kept changes from call to call, or a generated column's is over another
    one."""

    sqlstate = "42P17"


class GeneratedAlways(Refused):
    """A value was given for a column that is computed from others."""

    sqlstate = "428C9"


class SequenceExhausted(Refused):
    """A sequence has given its last number."""

    sqlstate = "2200H"


class DependentObjects(Refused):
    """Something else rests on what was to be dropped."""

    sqlstate = "2BP01"


class TableBusy(Refused):
    """Another job is changing the table (D9)."""

    sqlstate = "55006"


class CannotChange(Refused):
    """A setting that is told, not made."""

    sqlstate = "55P02"


class UnknownJob(Refused):
    sqlstate = "42704"


class WrongJobState(Refused):
    """The job is not in a state in which that can be done to it (any more)."""

    sqlstate = "55000"


class NotGenerated(Refused):
    """The column has no expression that could be dropped."""

    sqlstate = "55000"


class WrongIdentity(Refused):
    """The column is an identity column, or is none, or can't become one as it is."""

    sqlstate = "55000"


class NoNumberYet(Refused):
    """currval or lastval in a session that has drawn no number."""

    sqlstate = "55000"


class InternalFailure(Refused):
    """Deciding this one request failed by a defect of this program; nothing of it was applied."""

    sqlstate = "XX000"


class AmbiguousColumn(Refused):
    """More than one table of FROM has a column of that name."""

    sqlstate = "42702"


class DuplicateAlias(Refused):
    sqlstate = "42712"


class GroupingError(Refused):
    """A column is neither grouped nor inside an aggregate, or an aggregate stands where none
    can."""

    sqlstate = "42803"


class WindowingError(Refused):
    """A window function stands where none can."""

    sqlstate = "42P20"


class UndefinedParameter(Refused):
    """A text has $n and no value comes for it."""

    sqlstate = "42P02"


class InvalidColumnReference(Refused):
    """ORDER BY, GROUP BY or DISTINCT ON names what isn't in the result."""

    sqlstate = "42P10"


class InvalidRecursion(Refused):
    sqlstate = "42P19"


class TooManyRows(Refused):
    """A query that stands for one value gave more than one row."""

    sqlstate = "21000"


class IndeterminateType(Refused):
    """Nothing says of which type a value is."""

    sqlstate = "42P18"


class WrongObject(Refused):
    """An operator or a value of another sort than the phrase takes."""

    sqlstate = "42809"


class InvalidLimit(Refused):
    """LIMIT below zero."""

    sqlstate = "2201W"


class InvalidOffset(Refused):
    """OFFSET below zero."""

    sqlstate = "2201X"


class InvalidFrame(Refused):
    """A window's frame begins or ends a negative number of rows away."""

    sqlstate = "22013"


class TooComplex(Refused):
    """A statement of more parts than can be worked on."""

    sqlstate = "54001"


class QueryCanceled(Refused):
    """A statement took longer than its limit, or somebody has asked for its end."""

    sqlstate = "57014"


class CanceledUnderWay(QueryCanceled):
    """Likewise, of who has waited for the answer to what was sent: it may be done all the same."""

    definite = False


class VerifyError(Refused):
    """The row seen is not the row there now (T1)."""

    sqlstate = "40001"
    replayable = True


class Uncommittable(Refused):
    """It changes a row that it has deleted or changed itself, and expects it as before (T2): no
    replay can help, so it has no code that clients answer with one."""

    sqlstate = "40000"


class StaleVersion(Refused):
    """A descriptor version below the table's `min_version` was used (D5)."""

    sqlstate = "40001"
    replayable = True


class GaveUp(Refused):
    """The last allowed attempt met a verify error again; final."""

    sqlstate = "40001"


class SnapshotTooOld(Refused):
    """A time before the history that is still kept."""

    sqlstate = "72000"


class NotCoherent(LeaseholdError):
    sqlstate = "57P03"


class NoMaster(LeaseholdError):
    sqlstate = "57P03"


class OutcomeUnknown(LeaseholdError):
    sqlstate = "08007"
    definite = False


class LedgerUnavailable(LeaseholdError):
    sqlstate = "58030"
    definite = False


class BusUnavailable(LeaseholdError):
    sqlstate = "58030"
    definite = False


class NodeUnreachable(LeaseholdError):
    sqlstate = "08001"


class SnapshotUnavailable(LeaseholdError):
    """The store the copy was meant for is untouched; asking again, or another node, is safe."""

    sqlstate = "58030"


class LogStopped(LeaseholdError):
    sqlstate = "XX001"


class StoreUnwritable(LeaseholdError):
    """What was applied is kept; a node that is started again goes on from there."""

    sqlstate = "58030"


class StoreCorrupted(LeaseholdError):
    sqlstate = "XX001"


def refused(code: str, message: str, detail: Mapping[str, object]) -> Refused:
    """The error of a decided refusal that has travelled as code, words and detail."""
    error = _BY_CODE.get(code, Refused)(message)
    error.detail = dict(detail)
    return error


# Of those that share a code the first stands for all: a caller tells them apart by nothing else.
_BY_CODE: dict[str, type[Refused]] = {}
for _kind in Refused.__subclasses__():
    for _leaf in (_kind, *_kind.__subclasses__()):
        _BY_CODE.setdefault(_leaf.sqlstate, _leaf)
