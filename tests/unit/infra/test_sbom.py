"""`make sbom` writes a CycloneDX document that says what the locks say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from infra.image_lock import locked_images
from infra.sbom import (
    JARS,
    ROOT,
    bill_of_materials,
    coordinates_of,
    read_digests,
    read_jars,
    render,
)

LOCKS = ("requirements.lock", "infra/tools.lock")


@pytest.fixture(scope="module")
def document() -> str:
    return render(bill_of_materials())


@pytest.fixture(scope="module")
def components(document: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(document)["components"]
    return made


def test_it_fits_the_schema_of_cyclonedx(document: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(document) is None
    broken = document.replace('"bomFormat": "CycloneDX"', '"bomFormat": "Cyclone"')
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(broken) is not None


def digests_of_kind(components: list[dict[str, Any]], kind: str) -> dict[str, set[str]]:
    return {
        each["purl"].removeprefix(f"pkg:{kind}/"): {hash_["content"] for hash_ in each["hashes"]}
        for each in components
        if each["purl"].startswith(f"pkg:{kind}/")
    }


def test_each_package_of_the_lock_is_in_it(components: list[dict[str, Any]]) -> None:
    """Method: the lock is read word by word here, by one pattern there."""
    locked: dict[str, set[str]] = {}
    for word in open_lock("requirements.lock").split():
        name, equals, version = word.partition("==")
        if equals:
            files = locked.setdefault(f"{name}@{version}", set())
        elif word.startswith("--hash="):
            files.add(word.removeprefix("--hash=sha256:"))
    assert len(locked) > 50
    assert digests_of_kind(components, "pypi") == locked


def open_lock(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_each_jar_and_image_is_in_it(components: list[dict[str, Any]]) -> None:
    jars = {digest for name in JARS for digest in read_digests(name).values()}
    found = digests_of_kind(components, "maven")
    assert set().union(*found.values()) == jars
    assert "org.apache.kafka/kafka_2.13@4.2.0?type=jar" in found
    images = digests_of_kind(components, "docker")
    assert {f"sha256:{digest}" for (digest,) in images.values()} == set(locked_images().values())


def test_each_component_says_its_licence(components: list[dict[str, Any]]) -> None:
    without = [each["purl"] for each in components if not each.get("licenses")]
    assert all(each.startswith("pkg:docker/") for each in without), without


@pytest.mark.parametrize("name", JARS)
def test_the_two_files_on_jars_speak_of_the_same(name: str) -> None:
    assert set(read_jars(name)) == set(read_digests(name)), "run: make lock"


def test_what_maven_says_becomes_lines() -> None:
    licences = [{"license": {"id": "MIT"}}, {"license": {"name": "Go License"}}]
    said = [
        {"group": "g", "name": "b", "version": "1", "licenses": licences},
        {"group": "g", "name": "a", "version": "2", "licenses": [{"expression": "MIT OR X"}]},
        {"group": "g", "name": "c", "version": "3"},
    ]
    lines = "g:a:2 MIT OR X\ng:b:1 MIT, Go License\ng:c:3\n"
    assert coordinates_of(json.dumps({"components": said})) == lines


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_digests_and_no_address(name: str) -> None:
    """Each package is held to digests, and whichever index a newcomer has serves them."""
    text = open_lock(name)
    assert "://" not in text
    entries = text.replace("\\\n", "").splitlines()
    entries = [each for each in entries if not each.startswith("#")]
    assert entries
    for entry in entries:
        first, *others = entry.split()
        assert "==" in first
        assert others, f"{first} has no digest"
        assert all(other.startswith("--hash=sha256:") for other in others), entry
