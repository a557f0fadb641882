"""Who of Spark's driver and workers opens files of the machine that it runs on.

Goal: nothing that another driver or worker needs is on a disk of one of them. Method: imports of
whatever opens files, in all modules; each is known, with what it does there.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import spark_streaming

OPENING: Final = {"os", "pathlib", "shutil", "tempfile", "sqlite3", "io", "glob", "fsspec"}
KNOWN: Final = {
    "code_archive.py": "packs the code for executors, into the driver's scratch folder",
    "driver.py": "its scratch folder, and closing a folder of `file:` to others",
    "fact_files.py": "files on `file:`, which all machines reach at one place",
    "fact_store.py": "asks for those where the folder is on `file:`",
    "session.py": "jars, configuration and scratch folder of the driver's own JVM",
    "spark_settings.py": "the folder of the jars",
}


def imported(module: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def opens(module: Path) -> bool:
    called = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    }
    return bool(imported(module) & OPENING) or "open" in called


def test_who_opens_files_of_its_machine_is_known() -> None:
    modules = Path(spark_streaming.__file__).parent.rglob("*.py")
    assert {module.name for module in modules if opens(module)} == set(KNOWN)
