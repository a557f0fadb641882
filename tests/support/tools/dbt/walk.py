"""A project of dbt's taken through: seeds, models of each kind, tests, a snapshot, documents; and
again after rows and columns have changed. Prints what became of each node, and the catalog."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

PROJECT = Path(__file__).parent


def invoke(folder: Path, *words: str) -> Any:
    """Return what a command of dbt's comes to, and print the nodes that it ran."""
    places = {"project-dir": PROJECT, "profiles-dir": PROJECT, "target-path": folder / "target"}
    places["log-path"] = folder
    options = [f"--{name}={place}" for name, place in places.items()]
    done = dbtRunner().invoke([*words, *options, "--quiet"])
    if done.exception is not None:
        raise SystemExit(f"{words}: {done.exception}")
    for line in sorted(told(done.result)):
        print(words[0], line)
    if not done.success:
        raise SystemExit(f"{words} has failed")
    return done.result


def told(result: Any) -> Iterable[str]:
    for each in getattr(result, "results", ()):
        message = each.message if each.status in ("error", "fail") else ""
        named = getattr(each, "node", None)
        name = each.unique_id if named is None else named.name
        yield f"{name} {each.status} {message}".rstrip()


def show_catalog(folder: Path) -> None:
    """Print what `docs generate` has found, but for the database's and the owner's names."""
    found = json.loads((folder / "target" / "catalog.json").read_text())
    assert not found["errors"], found["errors"]
    for name, node in sorted(found["nodes"].items()):
        metadata = node["metadata"]
        print(name, metadata["type"], metadata["schema"], metadata["name"], metadata["comment"])
        for column in sorted(node["columns"].values(), key=lambda column: column["index"]):
            print(" ", column["index"], column["name"], column["type"], column["comment"])


def main() -> None:
    folder = Path(sys.argv[1])
    invoke(folder, "seed")
    invoke(folder, "run")
    invoke(folder, "test")
    invoke(folder, "snapshot")
    # Once more over what is there: tables and views are replaced, a column and days are added.
    invoke(folder, "seed")
    invoke(folder, "run-operation", "change_ships")
    invoke(folder, "run", "--vars={with_tonnes: true}")
    invoke(folder, "snapshot")
    invoke(folder, "build", "--vars={with_tonnes: true}")
    invoke(folder, "docs", "generate")
    show_catalog(folder)


main()
