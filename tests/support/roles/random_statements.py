"""Random statements whose privileges are compared: grants, and what they are for. Of tables t, u,
s, f and the sequences q and s_id_seq, see `test_roles_postgres.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

COLUMNS: Final = {
    "t": ("id", "a", "b", "c"),
    "u": ("id", "a", "d"),
    "s": ("id", "e"),
    "f": ("id", "t_id", "g"),
}
NUMBERS: Final = {table: [c for c in names if c != "b"] for table, names in COLUMNS.items()}
SEQUENCES: Final = ("q", "s_id_seq")
OF_TABLES: Final = ("select", "insert", "update", "delete", "truncate", "references", "trigger")
OF_COLUMNS: Final = ("select", "insert", "update", "references")
OF_SEQUENCES: Final = ("select", "usage", "update")
Texts = tuple[str, ...]
_GRANT: Final = "grantor, grantee, table_name"
_PUBLIC: Final = "table_schema = 'public'"
_OTHERS: Final = "like 'pg\\_%' or role_name like 'leasehold\\_%' or role_name = 'postgres'"
SHOWN: Final = (
    *(
        f"{_GRANT}, privilege_type, is_grantable from information_schema.{name} where {_PUBLIC}"
        for name in ("table_privileges", "role_table_grants")
    ),
    *(
        f"{_GRANT}, column_name, privilege_type, is_grantable from information_schema.{name}"
        f" where {_PUBLIC}"
        for name in ("column_privileges", "role_column_grants")
    ),
    *(
        "grantor, grantee, object_name, privilege_type, is_grantable from"
        f" information_schema.{name} where object_type = 'SEQUENCE'"
        for name in ("usage_privileges", "role_usage_grants")
    ),
    f"role_name from information_schema.enabled_roles where not (role_name {_OTHERS})",
    f"* from information_schema.applicable_roles where not (role_name {_OTHERS})",
    f"table_name from information_schema.tables where {_PUBLIC}",
    f"table_name, column_name from information_schema.columns where {_PUBLIC}",
    (
        "table_name, constraint_name from information_schema.table_constraints where"
        f" {_PUBLIC} and constraint_name not like '%_not_null'"
    ),
    f"table_name, column_name from information_schema.key_column_usage where {_PUBLIC}",
    f"table_name, column_name from information_schema.constraint_column_usage where {_PUBLIC}",
    "constraint_name from information_schema.referential_constraints",
    "sequence_name from information_schema.sequences where sequence_schema = 'public'",
    "rolname, rolsuper, rolinherit, rolcanlogin from pg_roles where rolname in ('ann', 'bob')",
    "usename, usesuper from pg_user where usename in ('cho', 'staff', 'leasehold')",
    "groname, array_length(grolist, 1) from pg_group where groname in ('ann', 'staff', 'readers')",
    (
        "r.rolname, m.rolname, admin_option from pg_auth_members a join pg_roles r"
        " on r.oid = a.roleid join pg_roles m on m.oid = a.member"
        " where r.rolname in ('staff', 'readers')"
    ),
    "tablename, tableowner from pg_tables where schemaname = 'public'",
    "rolpassword from pg_authid where rolname = 'ann'",
    "passwd from pg_shadow where usename = 'ann'",
)


class RandomStatements:
    def __init__(self, chance: Random, roles: Sequence[str], groups: Sequence[str]) -> None:
        self._chance = chance
        self._roles, self._groups = roles, groups
        self._last = 100

    # ------------------------------------------------------------ who may do what

    def _role(self) -> str:
        return f'"{self._chance.choice((*self._roles, *self._groups))}"'

    def grant(self, superuser: str) -> tuple[str, str]:
        """Return who says it, and a GRANT or REVOKE."""
        chance = self._chance
        grants = chance.random() < 0.5
        to = "to" if grants else "from"
        whom = "public" if chance.random() < 0.08 else self._role()
        kind = chance.random()
        if kind < 0.12:
            group = chance.choice(self._groups)
            member = f'"{chance.choice(self._roles)}"'
            return superuser, f"{'grant' if grants else 'revoke'} {group} {to} {member}"
        if kind < 0.27:
            what, on = self._some(OF_SEQUENCES), f"sequence {chance.choice(SEQUENCES)}"
        else:
            table = chance.choice(list(COLUMNS))
            on = table
            if kind < 0.7:
                names = ", ".join(self._several(COLUMNS[table]))
                what = ", ".join(f"{p} ({names})" for p in self._several(OF_COLUMNS))
            else:
                what = "all" if chance.random() < 0.1 else self._some(OF_TABLES)
        return superuser, f"{'grant' if grants else 'revoke'} {what} on {on} {to} {whom}"

    def _several(self, names: Sequence[str]) -> list[str]:
        return self._chance.sample(list(names), self._chance.randint(1, min(3, len(names))))

    def _some(self, names: Sequence[str]) -> str:
        return ", ".join(self._several(names))

    # ------------------------------------------------------------ what they are for

    def statement(self) -> tuple[str, Texts]:
        """Return its kind (rows, told) and its texts."""
        made: Callable[[], tuple[str, Texts]] = self._chance.choices(
            (self._read, self._write, self._other, self._told), (40, 40, 12, 25)
        )[0]
        return made()

    def _table(self) -> str:
        return self._chance.choice(list(COLUMNS))

    def _number(self, table: str, alias: str = "") -> str:
        name = self._chance.choice(NUMBERS[table])
        return f"{alias or table}.{name}"

    def _where(self, table: str, alias: str = "") -> str:
        chance = self._chance
        kind = chance.random()
        if kind < 0.35:
            return ""
        if kind < 0.75:
            return f" where {self._number(table, alias)} = {chance.randint(1, 3)}"
        other = self._table()
        inner = f"select {self._number(other, 'z')} from {other} z"
        if chance.random() < 0.5:
            return f" where exists ({inner} where {self._number(table, alias)} = z.id)"
        return f" where {self._number(table, alias)} in ({inner})"

    def _shown(self, table: str, alias: str = "") -> str:
        chance = self._chance
        kind = chance.random()
        if kind < 0.12:
            return "count(*)"
        if kind < 0.2:
            return "1"
        if kind < 0.3:
            return f"{alias or table}.*"
        return ", ".join(f"{alias or table}.{c}" for c in self._several(COLUMNS[table]))

    def _query(self) -> str:
        chance = self._chance
        table, other = self._table(), self._table()
        shown, where = self._shown(table, "x"), self._where(table, "x")
        plain = f"select {shown} from {table} x{where}"
        match chance.randrange(9):
            case 0:
                return f"select {self._number(table, 'x')} from {table} x order by 1"
            case 1:
                on = f"{self._number(table, 'x')} = {self._number(other, 'y')}"
                return f"select {shown} from {table} x left join {other} y on {on}"
            case 2:
                return f"select count(*) from {table} x join {other} y using (id)"
            case 3:
                return f"select 1 from {table} x natural join {other} y"
            case 4:
                inner = f"select {', '.join(self._several(COLUMNS[table]))} from {table}"
                return f"select count(*) from ({inner}) w"
            case 5:
                inner = f"select {self._number(table)} as m from {table}"
                return f"with w as ({inner}) select m from w, {other}{self._where(other)}"
            case 6:
                left = f"select {self._number(table)} from {table}"
                return f"{left} union all select {self._number(other)} from {other}"
            case 7 if "count" not in shown:
                words = chance.choice(("update", "share", "no key update"))
                return f"{plain} for {words}"
        return plain

    def _read(self) -> tuple[str, Texts]:
        query, kind = self._query(), self._chance.random()
        if kind < 0.1:
            return "rows", (f"explain {query}",)
        if kind < 0.2 and " for " not in query:
            return "block", (f"declare k cursor for {query}", "fetch all from k", "close k")
        if kind < 0.28:
            table = self._table()
            names = f" ({self._some(COLUMNS[table])})" if self._chance.random() < 0.6 else ""
            return "rows", (f"copy {table}{names} to stdout",)
        return "rows", (query,)

    def _returning(self, table: str) -> str:
        if self._chance.random() < 0.6:
            return ""
        return f" returning {self._some(COLUMNS[table])}"

    def _write(self) -> tuple[str, Texts]:
        chance, table = self._chance, self._table()
        made = chance.choice((self._insert, self._insert, self._update, self._update, self._delete))
        return "rows", (made(table),)

    def _insert(self, table: str) -> str:
        chance = self._chance
        self._last += 1
        rest = self._several([c for c in COLUMNS[table] if c != "id"])
        serial = table == "s" and chance.random() < 0.6
        names = rest if serial else ["id", *rest]
        values = {"id": str(self._last), "b": "'z'", "t_id": "1", "a": str(self._last)}
        shown = ", ".join(values.get(name, "7") for name in names)
        into = f"insert into {table} as x ({', '.join(names)})"
        if chance.random() < 0.2:
            source = self._table()
            shown = ", ".join(values.get(name, self._number(source)) for name in names)
            said = f"{into} select {shown} from {source}{self._where(source)} limit 1"
        else:
            said = f"{into} values ({shown})"
        if chance.random() < 0.35:
            said += self._conflict(table)
        return said + self._returning(table)

    def _conflict(self, table: str) -> str:
        chance = self._chance
        if chance.random() < 0.2:
            return " on conflict do nothing"
        target = "(id)" if chance.random() < 0.7 else f"on constraint {table}_pkey"
        if chance.random() < 0.4:
            return f" on conflict {target} do nothing"
        names = [c for c in COLUMNS[table] if c not in ("id", "t_id")]
        name = chance.choice(names)
        value = chance.choice((f"excluded.{name}", f"x.{name}", "null"))
        where = f" where x.{chance.choice(NUMBERS[table])} > 0" if chance.random() < 0.3 else ""
        return f" on conflict {target} do update set {name} = {value}{where}"

    def _update(self, table: str) -> str:
        chance = self._chance
        names = [c for c in self._several(COLUMNS[table]) if c not in ("id", "t_id", "b")]
        name = (names or ["g" if table == "f" else NUMBERS[table][-1]])[0]
        value = chance.choice(("null", self._number(table, "x"), f"x.{name} + 1"))
        if name == "a" and table == "t":
            value = "x.a"  # it is unique
        said = f"update {table} x set {name} = {value}"
        if chance.random() < 0.2:
            other = self._table()
            return f"{said} from {other} y where x.id = {self._number(other, 'y')}"
        return said + self._where(table, "x") + self._returning(table)

    def _delete(self, table: str) -> str:
        if table == "t":
            table = "u"  # others refer to it
        if self._chance.random() < 0.25:
            other = self._table()
            return f"delete from {table} x using {other} y where x.id = y.id and y.id = 99"
        return f"delete from {table} x{self._where(table, 'x')}{self._returning(table)}"

    def _other(self) -> tuple[str, Texts]:
        chance = self._chance
        sequence = chance.choice(SEQUENCES)
        table = chance.choice(("u", "s", "f"))
        match chance.randrange(6):
            case 0:
                return "rows", (f"truncate {table}",)
            case 1:
                return "rows", (f"truncate {table}, {chance.choice(('f', 's'))}",)
            case 2:
                return "rows", (f"select nextval('{sequence}') > 0",)
            case 3:
                return "rows", (f"select setval('{sequence}', 7)",)
            case 4:
                return "rows", (f"select currval('{sequence}') > 0",)
        names = self._some(COLUMNS[table])
        return "rows", (f"copy {table} ({names}) from stdin",)

    def _told(self) -> tuple[str, Texts]:
        chance = self._chance
        if chance.random() < 0.4:
            return "told", (f"select {chance.choice(SHOWN)}",)
        chance, table = self._chance, self._table()
        role = chance.choice(("", "", f"'{chance.choice((*self._roles, *self._groups))}', "))
        option = " with grant option" if chance.random() < 0.2 else ""
        word, other = chance.choice(OF_TABLES), chance.choice(OF_COLUMNS)
        one, two = chance.choice(self._roles), chance.choice((*self._groups, *self._roles))
        column = chance.choice(COLUMNS[table])
        asked = chance.choice(
            (
                f"has_table_privilege({role}'{table}', '{word}{option}')",
                f"has_any_column_privilege({role}'{table}', '{other}{option}')",
                f"has_column_privilege({role}'{table}', '{column}', '{other}{option}')",
                f"has_sequence_privilege({role}'q', '{chance.choice(OF_SEQUENCES)}{option}')",
                f"pg_has_role('{one}', '{two}', '{chance.choice(('member', 'usage'))}')",
                f"pg_has_role('{two}', '{chance.choice(('member', 'usage'))}')",
                f"(select array_to_string(relacl, ';') from pg_class where relname = '{table}')",
                (
                    "(select string_agg(attname || array_to_string(attacl, ';'), ' ' order by"
                    f" attname) from pg_attribute where attrelid = '{table}'::regclass and"
                    " attnum > 0)"
                ),
                f"(select relowner::regrole::text from pg_class where relname = '{table}')",
                "current_user || session_user || current_setting('is_superuser')",
            )
        )
        return "told", (f"select {asked}",)
