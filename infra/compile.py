"""Compile modules of a `leasehold` package where it lies: `python -m infra.compile FOLDER MODULE…`.

For `infra.compiled`, which gives it a copy. All modules are one group, so that calls between them
go from C to C.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from mypyc.build import mypycify
from pybind11.setup_helpers import ParallelCompile
from setuptools import setup  # type: ignore[import-untyped]  # it has no types of its own

CHECKS: Final = """[mypy]
ignore_missing_imports = True
[mypy-postgast.pg_query_pb2]
follow_imports = skip
follow_imports_for_stubs = True
"""
"""The project's own settings are for its checks. postgast's stub has fields called None and True,
which mypy can't read."""
OPTIMIZATION: Final = "1"
"""gcc takes two thirds longer for 2; what that would gain was not measured."""
LOOK: Final = """
import importlib, sys
for name in sys.argv[1:]:
    path = importlib.import_module(name).__file__
    assert path.endswith(".so") and path.startswith(sys.path[0]), (name, path)
"""


def main(folder: Path, modules: list[str]) -> None:
    cache = folder.parent.parent / "cache"
    checks = folder.parent.parent / "mypy.ini"
    checks.write_text(CHECKS)
    os.chdir(folder)
    made = mypycify(
        [
            f"--config-file={checks}",
            "--python-version=3.11",
            f"--cache-dir={cache}",
            *(f"leasehold/{module}" for module in modules),
        ],
        opt_level=OPTIMIZATION,
        debug_level="0",
        multi_file=True,
        group_name="leasehold",
    )
    for extension in made:
        # A newer compiler's new warnings are no reason to have no build.
        extension.extra_compile_args = [*extension.extra_compile_args, "-Wno-error"]
    with ParallelCompile():  # of the files of one extension; setuptools itself knows only several
        setup(
            name="leasehold-compiled",
            packages=[],
            ext_modules=made,
            script_args=["build_ext", "--inplace"],
        )
    shutil.rmtree("build")  # the C sources
    names = [f"leasehold.{module.removesuffix('.py').replace('/', '.')}" for module in modules]
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-P", "-c", LOOK, *names], env=environ, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
