"""Goal: Django takes a project through its history on a listener of ours: the migrations of its own
apps and of the project, data between them, tests in savepoints, and what `inspectdb` reads.

Method: Django's own commands, in processes of their own, on a whole database in this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.support.postgres.dev_server import DevServer, dev_server
from tests.support.tools.django_project import FILL, show_stage, write_project, write_tests

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        find_spec("django") is None, reason="NOT TESTED with Django: it is not installed"
    ),
]
WAIT_S: Final = 300.0

Run = Callable[..., str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    with dev_server(tmp_path_factory.mktemp("django")) as made:
        yield made


@pytest.fixture
def run(served: DevServer, tmp_path: Path) -> Run:
    """Runs a command of Django's in the project's folder."""
    write_project(tmp_path)
    given = {"PGPORT": str(served.port), "PGDATABASE": served.database, "PGUSER": "leasehold"}
    given |= {"DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": str(tmp_path)}

    def run(*words: str) -> str:
        program = words if words[0].endswith(".py") else ("-m", "django", *words)
        done = subprocess.run(
            [sys.executable, *program],
            cwd=tmp_path,
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_django_walks_a_history(run: Run, tmp_path: Path) -> None:
    run("makemigrations", "store")
    assert "Applying store.0001_initial... OK" in run("migrate")
    run("shell", "-c", FILL)
    show_stage(tmp_path, 1)
    run("make_migrations.py")
    assert ". OK" in run("migrate")
    assert "No changes detected" in run("makemigrations", "--check", "--dry-run")
    asked = (
        "from store.models import Ware; print(sorted(Ware.objects.values_list('title', 'ratio')))"
    )
    assert "[('w0', 0.5), ('w1', 0.5), ('w2', 0.5)]" in run("shell", "-c", asked)
    read = run("inspectdb", "store_ware", "store_bill")
    assert "price = models.DecimalField(max_digits=10, decimal_places=2)" in read
    assert "unique_together = (('shelf', 'title'),)" in read
    write_tests(tmp_path)
    assert "OK" in run("test", "--keepdb", "--noinput", "store")
