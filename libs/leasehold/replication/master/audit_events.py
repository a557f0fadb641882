"""What the audit log is told of a master's record: schema changes, roles, grants, jobs that were
steered, upgrades that were finalized, and requests that were refused for lack of a right. PURE.

All of it stands in the log too, with who has asked for it; this is the form for people, and it
holds no text of a statement: literals stand in those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.roles import FIRST_ROLE
from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.errors import InsufficientPrivilege, NotAuthentic
from leasehold.model.records.log import (
    AccessWrite,
    CatalogWrite,
    Commit,
    DescriptorWrite,
    EnumWrite,
    JobWrite,
    MembershipWrite,
    NamespaceWrite,
    Refusal,
    RoleWrite,
    TableTruncated,
    ViewWrite,
)

REFUSED: Final = frozenset({InsufficientPrivilege.sqlstate, NotAuthentic.sqlstate})
EVENTS_MAX: Final = 200
"""Of one record: the rest of what is refused is told as one."""


def events_of_commit(commit: Commit, catalog: Catalog) -> list[AuditEvent]:
    """Return what somebody has asked for with a commit; `catalog` is as before it."""
    if not commit.request_id or not commit.catalog:
        return []
    role = commit.principal or FIRST_ROLE.name
    return [event._replace(role=role) for event in _events(commit, catalog)]


def event_of_finalization(commit: Commit) -> AuditEvent | None:
    """Return what is told of a commit that has raised the database's feature level: from it on
    processes of an earlier release can't come back. None where it has raised none."""
    answer = commit.answer
    if not isinstance(answer, dict) or not answer.get("finalized"):
        return None
    words = f"finalized at feature level {answer['level']}, from {answer['was']}"
    role = commit.principal or FIRST_ROLE.name
    return AuditEvent(Audited.UPGRADE, role=role, subject="the database", words=words)


def _events(commit: Commit, catalog: Catalog) -> Iterator[AuditEvent]:
    told: set[AuditEvent] = set()
    for write in commit.catalog:
        event = _event(write, catalog)
        if event is not None and event not in told:
            told.add(event)
            yield event


def _event(write: CatalogWrite, catalog: Catalog) -> AuditEvent | None:
    match write:
        case JobWrite(job_id, body):
            known = catalog.jobs.get(job_id)
            if known is not None:
                words = f"{body['status']}; {_settings(body)}"
                return AuditEvent(Audited.JOB, subject=f"job {job_id}", words=words)
            words = f"job {job_id}: {body['kind']}, {body['subject']}"
            return AuditEvent(Audited.SCHEMA, subject=str(body["table"]), words=words)
        case DescriptorWrite(table_id, version, _):
            words = "made" if version == 1 else f"version {version}"
            return AuditEvent(Audited.SCHEMA, subject=_name_in(write, catalog), words=words)
        case TableTruncated(table_id):
            return AuditEvent(Audited.SCHEMA, subject=_name(table_id, catalog), words="truncated")
        case RoleWrite(role_id, body):
            name = catalog.access.roles.name_of(role_id) if body is None else str(body["name"])
            known_role = role_id in catalog.access.roles.by_id
            words = "dropped" if body is None else "altered" if known_role else "made"
            return AuditEvent(Audited.ROLE, subject=f"role {name}", words=words)
        case MembershipWrite(role_id, member_id, body):
            roles = catalog.access.roles
            words = f"{'revoked from' if body is None else 'granted to'} {roles.name_of(member_id)}"
            return AuditEvent(Audited.GRANT, subject=f"role {roles.name_of(role_id)}", words=words)
        case AccessWrite(object_id, element_id, _):
            column = f", column {element_id}" if element_id else ""
            name = _name(object_id, catalog) if object_id else "the database"
            words = "owner or privileges"
            return AuditEvent(Audited.GRANT, subject=f"{name}{column}", words=words)
        case ViewWrite(view_id, body):
            views = catalog.access.views
            name = views[view_id].name if view_id in views else f"view {view_id}"
            words = "dropped" if body is None else "altered" if view_id in views else "made"
            subject = name if body is None else str(body["name"])
            return AuditEvent(Audited.SCHEMA, subject=f"view {subject}", words=words)
        case EnumWrite(type_id, body):
            enums = catalog.access.enums
            said = enums[type_id].name if type_id in enums else f"type {type_id}"
            words = "dropped" if body is None else "altered" if type_id in enums else "made"
            subject = said if body is None else str(body["name"])
            return AuditEvent(Audited.SCHEMA, subject=f"type {subject}", words=words)
        case NamespaceWrite(namespace_id, body):
            found = catalog.access.namespaces.get(namespace_id)
            said = f"schema {namespace_id}" if found is None else found.name
            subject = said if body is None else str(body["name"])
            words = "dropped" if body is None else "made"
            if body is not None and found is not None:
                words = f"renamed, was {said}" if said != subject else "found by this name alone"
            return AuditEvent(Audited.SCHEMA, subject=f"schema {subject}", words=words)
        case _:
            return None


def _settings(body: dict[str, object]) -> str:
    settings = body.get("settings")
    assert isinstance(settings, dict), body
    return ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))


def _name_in(write: DescriptorWrite, catalog: Catalog) -> str:
    body = write.body
    found = body.get("name") if isinstance(body, dict) else None
    return str(found) if found else _name(write.table_id, catalog)


def _name(table_id: int, catalog: Catalog) -> str:
    access = catalog.access
    if table_id in access.namespaces:
        return f"schema {access.namespaces[table_id].name}"
    if table_id in access.views:
        return access.views[table_id].name
    if table_id in access.enums:
        return f"type {access.enums[table_id].name}"
    try:
        return catalog.newest(table_id).name
    except KeyError:  # of this very commit
        return f"table {table_id}"


def events_of_refusals(refusals: Sequence[Refusal]) -> Iterable[AuditEvent]:
    """Return what was refused for lack of a right: equal ones are one, so that who asks in vain a
    thousand times has a line of each record."""
    found = Counter(
        (refusal.code, refusal.principal, refusal.message)
        for refusal in refusals
        if refusal.code in REFUSED
    )
    events = [
        AuditEvent(Audited.REFUSED, code, role=role, words=words, times=times)
        for (code, role, words), times in found.items()
    ]
    if len(events) > EVENTS_MAX:
        rest = sum(event.times for event in events[EVENTS_MAX:])
        events = [*events[:EVENTS_MAX], AuditEvent(Audited.REFUSED, words="others", times=rest)]
    return events
