"""Where a client connects to: the same words for our listener and for a PostgreSQL."""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg


class Server(NamedTuple):
    kind: str
    port: int
    user: str
    database: str

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user={self.user} dbname={self.database}"

    def url(self, driver: str) -> str:
        return f"postgresql+{driver}://{self.user}@127.0.0.1:{self.port}/{self.database}"

    def psycopg(self, **more: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn, **more)

    def asyncpg(self) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": self.user,
            "database": self.database,
        }
