"""The command `leasehold setup-acls`: rights on Kafka and Redis for each kind of process."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from leasehold.adapters.kafka.acls import AclAdmin, Given
from leasehold.adapters.redis.users import (
    DEFAULT_USER,
    USER_NAME,
    RedisUsers,
    UserRules,
    digest_of,
    is_as_wanted,
    is_open,
)
from leasehold.cli.command import Subparsers, add, read_text_file
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.model.errors import ConfigurationError
from leasehold.model.process_rights import KIND_NAMED, KINDS, is_of_database, is_wider
from leasehold.settings.client import ClientSettings
from leasehold.settings.setting import SECRET_BYTES_MAX

CLIENT_ID: Final = "leasehold-setup-acls"
PRINCIPAL_CHARACTERS_MAX: Final = 256
PASSWORD_CHARACTERS_LEAST: Final = 12
MORE: Final = """\
Principals are those that Kafka knows: User:NAME with a password, User:CN=… with a certificate. One
may be of several kinds, and there may be several of one kind.

What is missing is added; nothing is taken away without --prune. May be repeated. It is run as
somebody who may Alter and Describe the cluster (in Redis: ACL), by the usual settings
LEASEHOLD_KAFKA…, LEASEHOLD_REDIS….

With --dry-run nothing is changed, and the exit code is 1 if something would be.

  leasehold setup-acls --topics User:setup --master User:m --replicant User:r --dry-run

With --redis the names behind User: are users of Redis, too, with the password that stands in
the file of their name in --redis-passwords."""


class Plan(NamedTuple):
    """What is to be done, and what is there beside it."""

    missing: Sequence[Given]
    beyond: Sequence[Given]
    """What the principals that were named have on this database, and the table doesn't give."""
    others: Sequence[str]
    """Principals that were not named and have rights on this database."""
    wider: Sequence[Given]
    """Rights on topics of this database and of others alike: they are shown, and never taken."""
    users: Sequence[UserRules]
    open_redis: bool


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "setup-acls", run, MORE)
    for kind in KINDS:
        parser.add_argument(
            f"--{kind.name}",
            action="append",
            default=[],
            metavar="PRINCIPAL",
            help=kind.who.replace("`", ""),
        )
    parser.add_argument(
        "--file", help="lines of KIND PRINCIPAL, as above without the dashes; # begins a comment"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be changed")
    parser.add_argument(
        "--prune",
        action="store_true",
        help="take from the principals named what they have beyond that on this database's topics",
    )
    parser.add_argument("--redis", action="store_true", help="make users of Redis, too")
    parser.add_argument(
        "--redis-passwords", type=Path, metavar="FOLDER", help="files with their passwords"
    )
    parser.add_argument(
        "--redis-lines",
        action="store_true",
        help="print ACL SETUSER lines instead, with digests in the place of passwords; connect to"
        " nothing",
    )


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    database = settings.topics.database
    kinds = read_principals(args)
    users = redis_users(kinds, database, args.redis_passwords) if args.redis else []
    if args.redis_lines:
        for user in redis_users(kinds, database, args.redis_passwords):
            output.line(f"ACL SETUSER {' '.join(user.words())}")
        return ExitCode.OK
    acls = AclAdmin(settings.kafka, CLIENT_ID)
    with closing(RedisUsers(settings.redis)) as redis:
        plan = _plan(acls, redis, wanted_rights(kinds, database), users, database)
        unwanted = plan.beyond if args.prune else []
        _show(plan, unwanted, args, output)
        changes = bool(plan.missing or unwanted or plan.users)
        if args.dry_run:
            return ExitCode.NOT_RIGHT if changes else ExitCode.OK
        # First what is given: who has a right by two entries is never without it.
        acls.create(plan.missing)
        acls.delete(unwanted)
        for user in plan.users:
            redis.set_user(user)
        if plan.users and not redis.save():
            output.note(
                "warning: Redis has no aclfile and forgets its users as it restarts; name one in"
                " its settings, or run this again then"
            )
    return ExitCode.OK


def read_principals(args: argparse.Namespace) -> Mapping[str, Sequence[str]]:
    """Return the names of kinds by principal. Raises ConfigurationError."""
    found: dict[str, list[str]] = {}
    named = [(kind.name, each) for kind in KINDS for each in getattr(args, kind.name)]
    if args.file:
        named += _read_file(args.file)
    for kind, principal in named:
        if not is_principal(principal):
            raise ConfigurationError(
                f"{principal!r} can't be a principal; expected Kafka's form, such as User:anna"
            )
        found.setdefault(principal, []).append(kind)
    if not found:
        raise ConfigurationError(
            "no principal is named: say which of them is which kind of process, such as"
            " --master User:m"
        )
    return found


def is_principal(text: str) -> bool:
    """Return whether a text has Kafka's form of a principal, and is not everybody."""
    kind, sign, name = text.partition(":")
    printable = text.isprintable() and len(text) <= PRINCIPAL_CHARACTERS_MAX
    return (
        kind == "User" and bool(sign) and name.strip() == name != "" and name != "*" and printable
    )


def _read_file(name: str) -> list[tuple[str, str]]:
    found = []
    for number, line in enumerate(read_text_file(name).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        kind, _, principal = line.strip().partition(" ")
        if kind not in KIND_NAMED:
            raise ConfigurationError(
                f"{name}, line {number}: there is no kind {kind!r}; expected one of"
                f" {', '.join(KIND_NAMED)}, then a principal"
            )
        found.append((kind, principal.strip()))
    return found


def wanted_rights(kinds: Mapping[str, Sequence[str]], database: str) -> frozenset[Given]:
    """Return the rights on Kafka that the principals are to have."""
    return frozenset(
        Given(principal, right)
        for principal, names in kinds.items()
        for name in names
        for right in KIND_NAMED[name].kafka_rights(database)
    )


def redis_users(
    kinds: Mapping[str, Sequence[str]], database: str, folder: Path | None
) -> list[UserRules]:
    """Return the users of Redis that the principals are to be. Raises ConfigurationError."""
    if folder is None:
        raise ConfigurationError("name the folder of passwords: --redis-passwords FOLDER")
    made = []
    for principal, names in kinds.items():
        rules = [KIND_NAMED[name].redis_rules(database) for name in names]
        needed = [each for each in rules if each is not None]
        if not needed:
            continue
        name = principal.partition(":")[2]
        if not USER_NAME.fullmatch(name) or name == DEFAULT_USER:
            raise ConfigurationError(
                f"{name!r} can't be a user of Redis: letters, digits, _ . @ and -, not"
                f" {DEFAULT_USER}"
            )
        selectors = dict.fromkeys(each for rule in needed for each in rule.selectors)
        rule = needed[0]._replace(selectors=tuple(selectors))
        made.append(UserRules(name, (digest_of(_password(folder / name)),), rule))
    return made


def _password(file: Path) -> str:
    text = read_text_file(str(file)).rstrip("\r\n")
    if not PASSWORD_CHARACTERS_LEAST <= len(text) <= SECRET_BYTES_MAX:
        raise ConfigurationError(
            f"{file} holds no password; expected {PASSWORD_CHARACTERS_LEAST} characters or more,"
            " such as openssl rand -hex 32 prints"
        )
    return text


def _plan(
    acls: AclAdmin,
    redis: RedisUsers,
    wanted: frozenset[Given],
    users: Sequence[UserRules],
    database: str,
) -> Plan:
    given = acls.given()
    ours = frozenset(each for each in given if is_of_database(each.right, database))
    named = {each.principal for each in wanted}
    beyond = (each for each in ours - wanted if each.principal in named)
    others = {each.principal for each in ours} - named
    lines = redis.lines() if users else {}
    changed = [
        user for user in users if user.name not in lines or not is_as_wanted(lines[user.name], user)
    ]
    everybody = is_open(lines.get(DEFAULT_USER, ""))
    wider = sorted(each for each in given if is_wider(each.right, database))
    return Plan(sorted(wanted - given), sorted(beyond), sorted(others), wider, changed, everybody)


def _show(plan: Plan, unwanted: Sequence[Given], args: argparse.Namespace, output: Output) -> None:
    kept = [] if unwanted else plan.beyond
    if output.as_json:
        output.json(
            {
                "given": [_told(each) for each in plan.missing],
                "taken": [_told(each) for each in unwanted],
                "beyond": [_told(each) for each in kept],
                "others": list(plan.others),
                "wider": [_told(each) for each in plan.wider],
                "redis_users": [user.name for user in plan.users],
                "dry_run": args.dry_run,
            }
        )
        return
    would = "would be " if args.dry_run else ""
    for word, rights in (("given", plan.missing), ("taken", unwanted)):
        for words in _lines(rights):
            output.line(f"{would}{word}: {words}")
    for user in plan.users:
        output.line(f"{would}set: user {user.name} of Redis")
    if not (plan.missing or unwanted or plan.users):
        output.line("nothing to do: all rights are there")
    for words in _lines(kept):
        output.note(f"beyond the table, stays without --prune: {words}")
    if plan.others:
        output.note(f"others with rights on this database: {', '.join(plan.others)}")
    for words in _lines(plan.wider):
        output.note(f"wider than this database, stays: {words}")
    if plan.open_redis:
        output.note(
            f"warning: Redis lets everybody in as user {DEFAULT_USER}, without a password; once"
            f" each process has its own: ACL SETUSER {DEFAULT_USER} off"
        )


def _lines(rights: Sequence[Given]) -> list[str]:
    """Return a line for each principal and resource."""
    lines = []
    for (principal, resource, name, prefixed), group in groupby(
        rights, lambda each: (each.principal, *each.right[:3])
    ):
        operations = ", ".join(each.right.operation for each in group)
        lines.append(f"{principal}: {operations} on {resource} {name}{'*' if prefixed else ''}")
    return lines


def _told(given: Given) -> dict[str, object]:
    return {"principal": given.principal, **given.right._asdict()}
