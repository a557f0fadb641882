"""Goal: a node that would serve others in the clear, or whoever comes, does not start.

Method: what a process reads of its environment, before anything begins.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leasehold.model.errors import ConfigurationError
from leasehold.node import process
from leasehold.replication.node_settings import NodeSettings
from leasehold.sql_session.listener import sql_of_environment

TOKEN = "0123456789abcdef0123456789abcdef"


def environ(folder: Path, **more: str) -> dict[str, str]:
    return {"LEASEHOLD_DATA": str(folder), "LEASEHOLD_SQL_PORT": "5432", **more}


def test_an_open_listener_says_so(tmp_path: Path) -> None:
    assert sql_of_environment(environ(tmp_path)).open_to.startswith("open: ")
    asked = environ(tmp_path, LEASEHOLD_SQL_AUTH="scram-sha-256")
    assert sql_of_environment(asked).open_to == ""


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"LEASEHOLD_SQL_HOST": "0.0.0.0"}, "LEASEHOLD_SQL_USERS"),
        ({"LEASEHOLD_SQL_TLS_CERT": "/nowhere"}, "LEASEHOLD_SQL_TLS_CERT"),
        ({"LEASEHOLD_LISTEN": "0.0.0.0", "LEASEHOLD_SNAPSHOT_TOKEN": TOKEN}, "SNAPSHOT_TLS_CERT"),
    ],
)
def test_it_is_said_before_the_node_starts(tmp_path: Path, more: dict[str, str], word: str) -> None:
    with pytest.raises(ConfigurationError, match=word):
        process._read((sql_of_environment,), NodeSettings("r1"), environ(tmp_path, **more))


def test_a_node_tells_that_it_is_open(tmp_path: Path) -> None:
    read = process._read((sql_of_environment,), NodeSettings("r1"), environ(tmp_path))
    assert read.beside[0].open_to.startswith("open: ")
