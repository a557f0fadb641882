"""What a real PostgreSQL makes of expressions: value, type, or SQLSTATE."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Final

BATCH: Final = 1_000  # expressions a script
EVALUATED: Final = """
create function evaluated(statement text) returns text language plpgsql as $$
declare shown text;
begin
    execute statement into shown;
    return 'value:' || shown;
exception when others then
    return 'error:' || sqlstate || ':' || sqlerrm;
end $$;
"""


class Oracle:
    """`connection`: arguments of psql that say which server."""

    def __init__(self, *connection: str) -> None:
        self._connection = connection
        self.run(EVALUATED)

    def run(self, script: str) -> str:
        """What psql prints: a line per row, without headings."""
        done = subprocess.run(
            ["psql", *self._connection, "-U", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1"],
            input=script,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answers(self, expressions: Sequence[str], zone: str = "UTC") -> list[str]:
        """Of each expression `value:<type>|<text>` or `error:<SQLSTATE>:<words>`."""
        found: list[str] = []
        for start in range(0, len(expressions), BATCH):
            lines = [_line(each) for each in expressions[start : start + BATCH]]
            shown = self.run(f"set timezone = '{zone}';\n" + "\n".join(lines)).splitlines()
            found += (bytes.fromhex(line).decode() for line in shown)
        assert len(found) == len(expressions)
        return found


def _line(expression: str) -> str:
    """In hexadecimal digits, since a value may hold the end of a line."""
    shown = "pg_typeof(v)::text || '|' || coalesce(v::text, 'NULL')"
    statement = f"select {shown} from (select {expression} as v) as x"
    quoted = statement.replace("'", "''")
    return f"select encode(convert_to(evaluated('{quoted}'), 'UTF8'), 'hex');"
