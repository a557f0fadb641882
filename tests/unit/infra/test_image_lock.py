"""The images of others are held to the digests of infra/images.lock."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from infra import compose
from infra.image_lock import (
    DIGEST,
    FROM_LINE,
    ImageLockError,
    locked_images,
    look_up_again,
    pin_dockerfile,
    pinned,
    pinned_dockerfiles,
    read_lock,
)

SOME = f"sha256:{'0a' * 32}"
OTHER = f"sha256:{'1b' * 32}"


def test_the_dockerfiles_and_compose_begin_with_what_is_locked() -> None:
    used = set()
    for file, wanted in pinned_dockerfiles(locked_images()).items():
        text = file.read_text(encoding="utf-8")
        assert text == wanted, f"{file.name} is not of infra/images.lock; run: make compose"
        used |= {image for image, _, _ in FROM_LINE.findall(text)}
    services = YAML(typ="safe").load(compose.FILE.read_text(encoding="utf-8"))["services"]
    for service in services.values():
        if "build" not in service:
            image = service["image"].partition("@")[0]
            assert service["image"] == pinned(image, locked_images())
            used.add(image)
    assert used == set(locked_images()), "a line of infra/images.lock serves nothing"


def test_each_of_them_has_a_digest() -> None:
    """One that loses its digest says so here, and in docs/how-to/deploy.md."""
    assert all(DIGEST.fullmatch(digest) for digest in locked_images().values())


def test_an_image_of_which_no_digest_is_known_keeps_its_tag_alone() -> None:
    lock = read_lock(f"# a head\na/b:1 {SOME}\nc:2-slim\n")
    assert lock == {"a/b:1": SOME, "c:2-slim": ""}
    assert pinned("a/b:1", lock) == f"a/b:1@{SOME}"
    assert pinned("c:2-slim", lock) == "c:2-slim"
    with pytest.raises(ImageLockError, match="does not name d:3"):
        pinned("d:3", lock)
    with pytest.raises(ImageLockError, match="64 digits"):
        read_lock("a/b:1 sha256:12\n")


def test_stages_that_begin_with_stages_are_left_alone() -> None:
    text = f"FROM a/b:1@{OTHER} AS one\nRUN x\nFROM c:2-slim\nCOPY --from=one / /\nFROM one\n"
    pinned_text = pin_dockerfile(text, {"a/b:1": SOME, "c:2-slim": ""})
    assert pinned_text == text.replace(OTHER, SOME)
    assert pin_dockerfile(pinned_text, {"a/b:1": "", "c:2-slim": OTHER}) == (
        f"FROM a/b:1 AS one\nRUN x\nFROM c:2-slim@{OTHER}\nCOPY --from=one / /\nFROM one\n"
    )


def test_the_lock_is_written_anew_whole_or_not_at_all() -> None:
    before = f"# a head\nc:2-slim\na/b:1 {SOME}\n"
    assert look_up_again(before, lambda image: OTHER) == (
        f"# a head\na/b:1 {OTHER}\nc:2-slim {OTHER}\n"
    )

    def ask(image: str) -> str:
        if image == "c:2-slim":
            raise ImageLockError("no registry")
        return OTHER

    with pytest.raises(ImageLockError, match="no registry"):
        look_up_again(before, ask)
