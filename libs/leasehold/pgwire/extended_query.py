"""The extended protocol: prepared statements and portals, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leasehold.model.errors import SyntaxInvalid
from leasehold.pgwire.batch import Batch
from leasehold.pgwire.copy_in import CopyIn
from leasehold.pgwire.messages import backend
from leasehold.pgwire.messages.frontend import (
    READERS,
    Bind,
    Close,
    Describe,
    Execute,
    Parse,
    Plain,
)
from leasehold.pgwire.named_objects import (
    EmptyStatement,
    NamedPortal,
    NamedStatement,
    empty_portal,
    is_empty,
)
from leasehold.pgwire.phases import Outcome
from leasehold.pgwire.values.formats import (
    ALL_TEXT,
    decode_values,
    describe_columns,
    describe_parameters,
    types_of_oids,
)
from leasehold.pgwire.wire_errors import DuplicatePortal, PortalUsedUp, ProtocolViolation

_DONE: Final = Outcome.DONE


class ExtendedQuery:
    """Runs one message at a time; what is kept between two is in the batch's named objects."""

    def __init__(self, batch: Batch, copy_in: CopyIn) -> None:
        self._batch = batch
        self._copy_in = copy_in
        self._methods: dict[int, Callable[[Any], Outcome]] = {
            ord("P"): self._parse,
            ord("B"): self._bind,
            ord("D"): self._describe,
            ord("E"): self._execute,
            ord("C"): self._close,
            ord("H"): self._flush,
        }

    def run(self, kind: int, body: bytes) -> Outcome:
        """Run a message. The same one again after WouldBlock goes on with what it has begun."""
        return self._methods[kind](READERS[kind](body, self._batch.limits))

    def _parse(self, message: Parse) -> Outcome:
        batch = self._batch
        if not message.name:
            batch.objects.drop_statement("")
        statements = batch.session.statements(message.text)
        batch.take_reports()
        if len(statements) > 1:
            raise SyntaxInvalid("cannot insert multiple commands into a prepared statement")
        types = types_of_oids(message.types)
        prepared = batch.session.prepare(statements[0], types) if statements else EmptyStatement()
        batch.objects.keep_statement(message.name, prepared, len(message.text))
        batch.replies.say(backend.PARSE_COMPLETE)
        return _DONE

    def _bind(self, message: Bind) -> Outcome:
        batch, session = self._batch, self._batch.session
        statement = batch.objects.statement(message.statement)
        prepared = statement.prepared
        if len(message.values) != len(prepared.parameters):
            raise ProtocolViolation(
                f"bind message supplies {len(message.values)} parameters, but prepared statement "
                f'"{message.statement}" requires {len(prepared.parameters)}'
            )
        if is_empty(statement) or not prepared.leaves_failed_block:
            batch.check_not_failed()
        if message.portal and session.declared(message.portal) is not None:
            raise DuplicatePortal(f'cursor "{message.portal}" already exists')
        size = sum(len(value) for value in message.values if value is not None)
        batch.objects.make_room(message.portal, size)
        zone = session.zone
        if not is_empty(statement):
            prepared = session.at_bind(prepared)
            if prepared is not statement.prepared:
                statement = NamedStatement(prepared)
        values = decode_values(statement.decoders(message.formats, zone), message.values)
        if is_empty(statement):
            made = empty_portal(statement)
        else:
            portal = session.bind(prepared, values)
            try:
                result = statement.result(message.result_formats, zone)
            except BaseException:
                portal.close()
                raise
            made = NamedPortal(statement, portal, result)
            made.described = not made.copies  # who wants to know what rows come asks by Describe
        batch.objects.keep_portal(message.portal, made, size)
        batch.replies.say(backend.BIND_COMPLETE)
        return _DONE

    def _describe(self, message: Describe) -> Outcome:
        if message.portal:
            return self._describe_portal(message.name)
        batch = self._batch
        statement = batch.objects.statement(message.name)
        prepared = statement.prepared
        columns = prepared.columns
        if columns is not None:
            batch.check_not_failed()
        if not is_empty(statement):
            batch.session.recheck(prepared)
        batch.replies.say(describe_parameters(prepared.parameters))
        batch.replies.say(
            backend.NO_DATA if columns is None else describe_columns(columns, ALL_TEXT)
        )
        return _DONE

    def _describe_portal(self, name: str) -> Outcome:
        batch = self._batch
        declared = batch.session.declared(name)
        if declared is not None:
            batch.check_not_failed()
            batch.replies.say(describe_columns(declared, ALL_TEXT))
            return _DONE
        portal = batch.objects.portal(name)
        if portal.statement.prepared.columns is not None:
            batch.check_not_failed()
        result = None if portal.copies else portal.result
        batch.replies.say(backend.NO_DATA if result is None else result.description)
        return _DONE

    def _execute(self, message: Execute) -> Outcome:
        batch = self._batch
        if not batch.resumes:
            batch.begin_statement()
        if message.portal and batch.session.declared(message.portal) is not None:
            return self._execute_declared(message)
        portal = batch.objects.portal(message.portal)
        if is_empty(portal.statement):
            batch.replies.say(backend.EMPTY_QUERY)
            return _DONE
        if not portal.statement.prepared.leaves_failed_block:
            batch.check_not_failed()
        used_up = portal.tag is not None and (portal.result is None or portal.copies)
        if used_up or portal.failed:
            raise PortalUsedUp(f'portal "{message.portal}" cannot be run')
        if portal.portal.copy is not None:
            self._copy_in.begin(portal)
            return Outcome.COPY_BEGINS_EXTENDED
        tag = batch.send_rows(portal, 0 if portal.copies else message.rows_max)
        if tag is None:
            batch.replies.say(backend.PORTAL_SUSPENDED)
            batch.suspends = True
        else:
            batch.complete(portal, tag)
        return _DONE

    def _execute_declared(self, message: Execute) -> Outcome:
        """Run as FETCH FORWARD a cursor that a statement has declared, with the tag of its query;
        called again it goes on."""
        batch = self._batch
        batch.check_not_failed()
        portal = batch.running
        if portal is None:
            prepared = batch.session.prepare_next(message.portal, message.rows_max)
            statement = NamedStatement(prepared)
            result = statement.result(ALL_TEXT, batch.session.zone)
            portal = NamedPortal(statement, batch.session.bind(prepared, ()), result)
            portal.described = True
            batch.running = portal
        count = str(batch.send_rows(portal, 0)).removeprefix("FETCH ")
        batch.close_running()
        if message.rows_max and count == str(message.rows_max):
            batch.replies.say(backend.PORTAL_SUSPENDED)
        else:
            batch.complete(portal, f"SELECT {count}")
        return _DONE

    def _close(self, message: Close) -> Outcome:
        batch = self._batch
        if message.portal:
            batch.objects.drop_portal(message.name)
            batch.session.close_declared(message.name)
        else:
            batch.objects.drop_statement(message.name)
        batch.replies.say(backend.CLOSE_COMPLETE)
        return _DONE

    def _flush(self, message: Plain) -> Outcome:
        self._batch.replies.flush()
        return _DONE
