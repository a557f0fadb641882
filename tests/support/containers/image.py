"""What an image gives its containers, read from its Dockerfile: environment, folder, user."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

_JOINED: Final = re.compile(r"\\\n\s*")
_USER: Final = re.compile(r"--uid (\d+)")


class Image(NamedTuple):
    """`entrypoint` stands before a command that does not replace it."""

    environment: dict[str, str]
    folder: str
    uid: int
    gid: int
    entrypoint: tuple[str, ...]
    check: tuple[str, ...]


def read_image(dockerfile: Path) -> Image:
    """Read the last stage and those that it is made of."""
    environment: dict[str, str] = {}
    folder, entrypoint, check, user = "/", (), (), ""
    uids: dict[str, tuple[int, int]] = {}
    for line in _JOINED.sub(" ", dockerfile.read_text("utf-8")).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "ENV":
            given = dict(each.split("=", 1) for each in shlex.split(rest))
            given.pop("PYTHONPATH", None)  # of what is compiled there, and runs interpreted here
            environment |= given
        elif word == "WORKDIR":
            folder = rest
        elif word == "USER":
            user = rest
        elif word == "ENTRYPOINT":
            entrypoint = tuple(json.loads(rest))
        elif word == "HEALTHCHECK":
            check = tuple(json.loads(rest[rest.index("[") :]))
        elif word == "RUN" and "useradd" in rest:
            found = _USER.search(rest)
            assert found is not None, "the user's number is to be known to Kubernetes"
            group = re.search(r"groupadd [^&]*--gid (\d+)", rest)
            name = rest[rest.index("useradd") :].split("&&")[0].split()[-1]
            uids[name] = (int(found[1]), int(group[1]) if group else 0)
    uid, gid = uids.get(user) or tuple(map(int, user.split(":")))
    return Image(environment, folder, uid, gid, entrypoint, check)
