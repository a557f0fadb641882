"""Holds the images of others to the digests of infra/images.lock: `python -m infra.image_lock`
looks them up anew, where Docker can ask a registry.

A tag is moved by whoever publishes it; a digest is the content's. The one that is locked is that of
the index over all platforms, so that one line serves each of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = ROOT / "infra" / "images.lock"
DOCKERFILES: Final = ROOT / "infra" / "images"
LOOK_UP_DEADLINE_S: Final = 60.0
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
FROM_LINE: Final = re.compile(r"^FROM ([^\s@:]+:[^\s@]+)(@\S+)?(.*)$", re.MULTILINE)
"""A stage that begins with an image; one that begins with another stage has no tag."""


class ImageLockError(Exception):
    """The lock can't be used, or a digest can't be looked up."""


def read_lock(text: str) -> dict[str, str]:
    """Return the digest of each image by name and tag, "" where none is known. Raises
    ImageLockError."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            image, _, digest = line.partition(" ")
            if digest and not DIGEST.fullmatch(digest):
                raise ImageLockError(f"{FILE.name}: {line!r} has no digest sha256:… of 64 digits")
            found[image] = digest
    return found


def pinned(image: str, lock: Mapping[str, str]) -> str:
    """Return the image with its digest, where one is known. Raises ImageLockError for one that the
    lock does not name."""
    if image not in lock:
        raise ImageLockError(f"{FILE.name} does not name {image}: add a line, then run: make lock")
    return f"{image}@{lock[image]}" if lock[image] else image


def pin_dockerfile(text: str, lock: Mapping[str, str]) -> str:
    """Return a Dockerfile whose stages begin with the digests of the lock. Raises ImageLockError
    for an image that the lock does not name."""
    return FROM_LINE.sub(lambda found: f"FROM {pinned(found[1], lock)}{found[3]}", text)


def pinned_dockerfiles(lock: Mapping[str, str]) -> dict[Path, str]:
    """Return what each Dockerfile should be."""
    files = sorted(DOCKERFILES.glob("*.Dockerfile"))
    return {file: pin_dockerfile(file.read_text(encoding="utf-8"), lock) for file in files}


def locked_images() -> dict[str, str]:
    """Return what the committed lock says."""
    return read_lock(FILE.read_text(encoding="utf-8"))


def ask_registry(image: str) -> str:
    """Return the digest that the tag stands for now. Raises ImageLockError, also without Docker."""
    command = ["docker", "buildx", "imagetools", "inspect", image]
    try:
        done = subprocess.run(
            [*command, "--format", "{{.Manifest.Digest}}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=LOOK_UP_DEADLINE_S,
        )
    except FileNotFoundError:
        raise ImageLockError("Docker is not installed here") from None
    except subprocess.TimeoutExpired:
        raise ImageLockError(f"no registry answered within {LOOK_UP_DEADLINE_S:g} s") from None
    said = done.stdout.strip()
    if done.returncode or not DIGEST.fullmatch(said):
        words = done.stderr.strip() or said or f"exit code {done.returncode}"
        raise ImageLockError(f"docker buildx imagetools said: {words.splitlines()[0]}")
    return said


def look_up_again(text: str, ask: Callable[[str], str]) -> str:
    """Return the lock with the digests that the tags stand for now. Raises ImageLockError: then
    nothing is known to be newer."""
    lock = read_lock(text)
    head = [line for line in text.splitlines() if line.startswith("#")]
    return "\n".join([*head, *(f"{image} {ask(image)}" for image in sorted(lock)), ""])


def main() -> int:
    try:
        made = look_up_again(FILE.read_text(encoding="utf-8"), ask_registry)
    except ImageLockError as error:
        print(f"lock: {FILE.name} stays as it is: {error}", file=sys.stderr)
        return 0
    FILE.write_text(made, encoding="utf-8")
    print(f"lock: wrote {FILE.name}; now: make compose")
    return 0


if __name__ == "__main__":
    sys.exit(main())
