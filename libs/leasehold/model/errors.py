"""The tree of errors; each leaf says what a caller may do about it.

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
    │   ├── OutOfMemory           53200    │
    │   │                                  │   └── CanceledUnderWay: indefinite, it was sent already
    │   ├── IndeterminateType     42P18    ├── WrongObject        42809
    │   ├── SequenceExhausted     2200H    ├── NoNumberYet        55000
    │   ├── WrongIdentity         55000    ├── CannotChange       55P02
    │   ├── UnknownRole           42704    ├── InvalidGrant       0LP01
    │   ├── DuplicateRole         42710    ├── ReservedName       42939
    │   ├── RoleInUse             55006    ├── NotAuthentic       28000
    │   ├── InsufficientPrivilege 42501    ├── DifferentOwners    55000
    │   ├── IndexNotFit           55000    ├── AmbiguousAlias     42P09
    │   ├── IncompatibleSchema    55000: a schema registry says no to a schema
    │   ├── NotHeldHere           55000: a partial replica lacks the table, or rows of it
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
    ├── SparkUnavailable          58030: Spark's master, or the file system of its folder, is away
    ├── NodeUnreachable           08001: no node answers on its port for SQL
    ├── SnapshotUnavailable       58030: no whole copy of a store could be had from a node
    ├── BackupUnavailable         58030: a backup's place can't be read or written
    ├── BackupDamaged             XX001: a backup is not what was written, or not whole
    ├── LogStopped                XX001: the log contradicts what this reader has read (L1, L2)
    ├── AuditUnavailable          58030: what must leave a trace in the audit log can't
    ├── RegistryUnavailable       58030: the schema registry does not answer, or not to us
    ├── StoreUnwritable           58030: the store's disk is full, or refuses to write
    └── StoreCorrupted            XX001: the store contradicts the log or itself

`definite` is True when the caller may conclude that nothing was applied; a definite error is never
raised under indefinite conditions (T5). `replayable` is True when running the work again on newer
data can succeed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

ROW_NUMBER: Final = "row_number"
"""Of `detail`: which of the rows that a statement is given it is, from 0."""


class LeaseholdError(Exception):
    """Root of the tree. `detail` names the objects concerned (table, column, key, job …)."""

    sqlstate: ClassVar[str] = "XX000"
    definite: ClassVar[bool] = True
    replayable: ClassVar[bool] = False

    def __init__(self, message: str, **detail: object) -> None:
        super().__init__(message)
        self.message = message
        self.detail: Mapping[str, object] = detail

    def __init_subclass__(cls, sqlstate: str = "", **keywords: object) -> None:
        """Take the code of a leaf; "": that of the class above it."""
        super().__init_subclass__(**keywords)
        cls.sqlstate = sqlstate or cls.sqlstate


class ConfigurationError(LeaseholdError, sqlstate="F0000"):
    """A setting, an argument or a file is missing, or can't be read as what it has to be."""


class Refused(LeaseholdError):
    """A decided "no" about one request. Its code and words travel to whoever asked."""


class MalformedRequest(Refused, sqlstate="08P01"):
    """A change request that has not the form of one, or names what can't go together."""


class InsufficientPrivilege(Refused, sqlstate="42501"):
    """The role has not the privilege, or does not own what it wants to change."""


class NotAuthentic(Refused, sqlstate="28000"):
    """A request whose signature does not prove who asks, or that has none and needs one; one of a
    role that does not exist, or may not log in."""


class InvalidGrant(Refused, sqlstate="0LP01"):
    """A GRANT that would go round in a circle, or to whom it can't be given."""


class UnknownRole(Refused, sqlstate="42704"):
    """A role that does not exist."""


class UnknownSchema(Refused, sqlstate="3F000"):
    """A schema (namespace) that does not exist."""


class DuplicateSchema(Refused, sqlstate="42P06"):
    """A schema (namespace) of that name is there already."""


class UnknownTable(Refused, sqlstate="42P01"):
    """A table, a view or a sequence that does not exist, or not at the LSN that is read."""


class UnknownColumn(Refused, sqlstate="42703"):
    """A column that the table or query does not have, or not in the version that is named."""


class WrongType(Refused, sqlstate="42804"):
    """A value or an expression of a type that does not become what is asked for."""


class InvalidText(Refused, sqlstate="22P02"):
    """Text that can't be read as a value of its type."""


class UntranslatableCharacter(Refused, sqlstate="22P05"):
    """A character that text can't hold: U+0000."""


class OutOfRange(Refused, sqlstate="22003"):
    """A number outside of its type's range, or more of something than may be."""


class InvalidMoment(Refused, sqlstate="22007"):
    """Text that is no date, time or interval."""


class MomentOutOfRange(Refused, sqlstate="22008"):
    """A field of a date or time, or what was computed from one, is out of its range."""


class InvalidLogarithm(Refused, sqlstate="2201E"):
    """The logarithm of zero or of a negative number."""


class InvalidPower(Refused, sqlstate="2201F"):
    """Zero to a negative power, or a negative number to one that is not whole."""


class InvalidEscapeSequence(Refused, sqlstate="22025"):
    """A LIKE pattern that ends in its escape character, or an ESCAPE of more than one."""


class InvalidSubstring(Refused, sqlstate="22011"):
    """A negative length."""


class InvalidSubscript(Refused, sqlstate="2202E"):
    """Arrays whose numbers of elements do not go together: json_object's."""


class NullNotAllowed(Refused, sqlstate="22004"):
    """A function met NULL where it can't be: format's %I."""


class InvalidRegularExpression(Refused, sqlstate="2201B"):
    """A regular expression that can't be read."""


class UnknownFunction(Refused, sqlstate="42883"):
    """The call of a function or operator that does not exist for arguments of these types."""


class AmbiguousFunction(Refused, sqlstate="42725"):
    """A call that several functions or operators would serve."""


class CannotCast(Refused, sqlstate="42846"):
    """The types have no cast between them."""


class TooLong(Refused, sqlstate="22001"):
    """A value longer than its column, or than any value may be."""


class DivisionByZero(Refused, sqlstate="22012"):
    """Division by zero."""


class UnknownVersion(Refused, sqlstate="22023"):
    """The request names a descriptor version that does not exist (yet)."""


class ZoneOutOfRange(Refused, sqlstate="22009"):
    """An offset from UTC of sixteen hours or more."""


class IntervalOverflow(Refused, sqlstate="22015"):
    """A field of an interval's text has no room."""


class InvalidArgument(Refused, sqlstate="22023"):
    """A value that a function, a type's modifier or a setting does not take."""


class FeatureNotSupported(Refused, sqlstate="0A000"):
    """Valid in PostgreSQL and not built here, or not yet while processes of an earlier release
    run; the hint says what to do instead."""


class SyntaxInvalid(Refused, sqlstate="42601"):
    """Text that is no statement; the position says where."""


class NotNullViolation(Refused, sqlstate="23502"):
    """A NULL, or no value, for a column that is NOT NULL."""


class DuplicateKey(Refused, sqlstate="23505"):
    """A key of a primary key, a UNIQUE constraint or a unique index that is there already; of a
    schema change: rows that are there have one key."""


class CheckViolation(Refused, sqlstate="23514"):
    """A row that breaks a CHECK."""


class ForeignKeyViolation(Refused, sqlstate="23503"):
    """A row that refers to no row, or one that others refer to and that would go."""


class InvalidForeignKey(Refused, sqlstate="42830"):
    """What a foreign key refers to is not unique, or not of its types."""


class RequestTooLarge(Refused, sqlstate="54000"):
    """The composed record of this one request can never fit (L8)."""


class RequestExpired(Refused, sqlstate="LH001"):
    """The id's own time lies before the horizon up to which outcomes are remembered (L5)."""


class RequestFromFuture(Refused, sqlstate="LH002"):
    """The id's own time lies ahead of the commit clock by more than the bound (L5)."""


class AttemptOutOfTurn(Refused, sqlstate="LH003"):
    """Attempt n was refused before and only n + 1 can be decided (L5)."""

    replayable = True


class DuplicateObject(Refused, sqlstate="42P07"):
    """A table, an index, a view or a sequence of that name is there already."""


class DuplicateConstraint(DuplicateObject, sqlstate="42710"):
    """A constraint of that name is there already."""


class DuplicateType(DuplicateObject, sqlstate="42710"):
    """A type, or a label of one, is there already."""


class InvalidName(Refused, sqlstate="42602"):
    """A name, or a label of an enum type, that can't be one."""


class DuplicateColumn(Refused, sqlstate="42701"):
    """A column that is there already, or is named twice."""


class UnknownObject(Refused, sqlstate="42704"):
    """An index, a constraint or a job that does not exist."""


class InvalidDefinition(Refused, sqlstate="42P16"):
    """A table would be left without something that it needs."""


class InvalidObject(Refused, sqlstate="42P17"):
    """An expression that is kept changes from call to call, or a generated column's is over another
    one."""


class GeneratedAlways(Refused, sqlstate="428C9"):
    """A value was given for a column that is computed from others."""


class SequenceExhausted(Refused, sqlstate="2200H"):
    """A sequence has given its last number."""


class DependentObjects(Refused, sqlstate="2BP01"):
    """Something else rests on what was to be dropped."""


class TableBusy(Refused, sqlstate="55006"):
    """The table is being changed by another job (D9)."""


class CannotChange(Refused, sqlstate="55P02"):
    """A setting that is told, not made."""


class UnknownJob(Refused, sqlstate="42704"):
    """A job that does not exist, or was forgotten a week after its end."""


class WrongJobState(Refused, sqlstate="55000"):
    """The job is not in a state in which that can be done to it (any more)."""


class UpgradeUnfinished(Refused, sqlstate="55000"):
    """A process is there that does not read what a finalization would permit."""


class NotGenerated(Refused, sqlstate="55000"):
    """The column has no expression that could be dropped."""


class WrongIdentity(Refused, sqlstate="55000"):
    """The column is an identity column, or is none, or can't become one as it is."""


class NoNumberYet(Refused, sqlstate="55000"):
    """currval or lastval in a session that has drawn no number."""


class IndexNotFit(Refused, sqlstate="55000"):
    """The index is another table's, or a constraint's already."""


class NotHeldHere(Refused, sqlstate="55000"):
    """A partial replica lacks what was asked for: it holds some tables, or some rows, alone."""


class IncompatibleSchema(Refused, sqlstate="55000"):
    """A schema that its registry takes for incompatible with earlier ones, or for none."""


class InternalFailure(Refused, sqlstate="XX000"):
    """Deciding this one request failed by a defect of this program; nothing of it was applied."""


class AmbiguousColumn(Refused, sqlstate="42702"):
    """The name of a column that several tables of FROM have."""


class AmbiguousAlias(Refused, sqlstate="42P09"):
    """The name of a table that two of FROM have, behind different schemas."""


class DuplicateAlias(Refused, sqlstate="42712"):
    """Two tables of FROM, or two queries of WITH, have one name."""


class GroupingError(Refused, sqlstate="42803"):
    """A column is neither grouped nor inside an aggregate, or an aggregate stands where none
    can."""


class WindowingError(Refused, sqlstate="42P20"):
    """A window function stands where none can."""


class UndefinedParameter(Refused, sqlstate="42P02"):
    """A text has $n and no value comes for it."""


class InvalidColumnReference(Refused, sqlstate="42P10"):
    """ORDER BY, GROUP BY or DISTINCT ON names what isn't in the result."""


class InvalidRecursion(Refused, sqlstate="42P19"):
    """A recursive query that has not the form of one."""


class TooManyRows(Refused, sqlstate="21000"):
    """A query that stands for one value gave more than one row."""


class IndeterminateType(Refused, sqlstate="42P18"):
    """A value whose type nothing tells."""


class WrongObject(Refused, sqlstate="42809"):
    """An operator or a value of another sort than the phrase takes."""


class InvalidLimit(Refused, sqlstate="2201W"):
    """LIMIT below zero."""


class InvalidOffset(Refused, sqlstate="2201X"):
    """OFFSET below zero."""


class InvalidFrame(Refused, sqlstate="22013"):
    """A window's frame begins or ends a negative number of rows away."""


class CodeRaised(Refused, sqlstate="P0001"):
    """RAISE EXCEPTION in the code of a DO."""


class NothingHandled(Refused, sqlstate="0Z002"):
    """RAISE without a text, where no error is handled."""


class TooComplex(Refused, sqlstate="54001"):
    """A statement of more parts than can be worked on."""


class OutOfMemory(Refused, sqlstate="53200"):
    """A statement needs more memory than it, or all statements of its node together, may hold."""


class DiskNearlyFull(Refused, sqlstate="53100"):
    """A master whose disk has less than its reserve left takes nothing that needs room."""


class QueryCanceled(Refused, sqlstate="57014"):
    """A statement took longer than its limit, or somebody has asked for its end."""


class CanceledUnderWay(QueryCanceled):
    """Likewise, of who has waited for the answer to what was sent: it may be done all the same."""

    definite = False


class VerifyError(Refused, sqlstate="40001"):
    """The row seen is not the row there now (T1)."""

    replayable = True


class Uncommittable(Refused, sqlstate="40000"):
    """A transaction that changes a row which it has deleted or changed itself, and expects it as
    before (T2): no replay can help, so it has no code that clients answer with one."""


class AdvisoryLockLost(Refused, sqlstate="57P01"):
    """An advisory lock of the session may be another one's by now: the session has to end."""


class NotificationsLost(Refused, sqlstate="57P01"):
    """A session has listened, and taken so little that its node had no room: it has to end."""


class DeadlockFound(Refused, sqlstate="40P01"):
    """Sessions wait for each other's advisory locks, and this one's wait has closed the
    circle."""


class LockNotAvailable(Refused, sqlstate="55P03"):
    """An advisory lock was not free within `lock_timeout`, or a row that NOWAIT asks for is
    claimed by another session."""


class StaleVersion(Refused, sqlstate="40001"):
    """A descriptor version below the table's `min_version` was used (D5)."""

    replayable = True


class GaveUp(Refused, sqlstate="40001"):
    """The last allowed attempt met a verify error again; final."""


class SnapshotTooOld(Refused, sqlstate="72000"):
    """A time before the history that is still kept."""


class DuplicateRole(Refused, sqlstate="42710"):
    """A role of that name is there already."""


class ReservedName(Refused, sqlstate="42939"):
    """A name of a role or a schema that only the database itself gives."""


class RoleInUse(Refused, sqlstate="55006"):
    """A role that its own session wants to drop."""


class DifferentOwners(Refused, sqlstate="55000"):
    """A sequence that would go with a table of another role."""


class NotCoherent(LeaseholdError, sqlstate="57P03"):
    """The node holds no coherency lease at the moment, so what it has may be outdated, or it
    has not yet the LSN that is asked for."""


class NoMaster(LeaseholdError, sqlstate="57P03"):
    """Nobody is master, or whoever is does not answer in time."""


class OutcomeUnknown(LeaseholdError, sqlstate="08007"):
    """The request was sent, and no answer has come in time."""

    definite = False


class LedgerUnavailable(LeaseholdError, sqlstate="58030"):
    """Redis does not answer, or has not given the ledger's answer in time; schema changes and
    advisory locks wait for it."""

    definite = False


class BusUnavailable(LeaseholdError, sqlstate="58030"):
    """Kafka does not answer."""

    definite = False


class SparkUnavailable(LeaseholdError, sqlstate="58030"):
    """Spark's master, or the file system of its folder, is away: a run is tried again; a driver
    ends, and goes on from its checkpoints when it is started."""


class NodeUnreachable(LeaseholdError, sqlstate="08001"):
    """Nobody answers at the address of a node's SQL port, or not as a node does."""


class SnapshotUnavailable(LeaseholdError, sqlstate="58030"):
    """The copy of a store that a node would begin from can't be had whole. The store it was
    meant for is untouched; asking again, or another node, is safe."""


class RegistryUnavailable(LeaseholdError, sqlstate="58030"):
    """What a feed in Avro or Protobuf needs of its schema registry is not known; nothing was
    done."""


class BackupUnavailable(LeaseholdError, sqlstate="58030"):
    """A folder or an object store that backups lie in, which can't be read or written."""


class BackupDamaged(LeaseholdError, sqlstate="XX001"):
    """A backup that is not what was written, or of which something is missing."""


class LogStopped(LeaseholdError, sqlstate="XX001"):
    """The log contradicts what this process has read of it, or has what it can't read: it
    stops, rather than go on with another past (L1, L2)."""


class AuditUnavailable(LeaseholdError, sqlstate="58030"):
    """The audit log takes no event, and none may be lost: nothing was done."""


class StoreUnwritable(LeaseholdError, sqlstate="58030"):
    """The disk of a store is full, or refuses to write. What was applied is kept; a node that
    is started again goes on from there."""


class StoreCorrupted(LeaseholdError, sqlstate="XX001"):
    """A store contradicts the log or itself."""


def refused(code: str, message: str, detail: Mapping[str, object]) -> Refused:
    """Return the error of a decided refusal that has travelled as code, words and detail."""
    error = _BY_CODE.get(code, Refused)(message)
    error.detail = dict(detail)
    return error


# Of those that share a code the first stands for all: a caller tells them apart by nothing else.
_BY_CODE: dict[str, type[Refused]] = {}
for _kind in Refused.__subclasses__():
    for _leaf in (_kind, *_kind.__subclasses__()):
        _BY_CODE.setdefault(_leaf.sqlstate, _leaf)
