"""Writes what Leasehold is made of as a CycloneDX document: `python -m infra.sbom`.

What is there comes from the locks: requirements.lock, infra/*/jars.sha256 and jars.coordinates,
infra/images.lock. Licences of Python packages are what the installed ones say of themselves, those
of jars what `make lock` has read from their poms. The list is flat: it does not say who needs whom.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from infra.image_lock import locked_images

ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = ROOT / ".leasehold" / "leasehold.cdx.json"
JARS: Final = ("kafka", "spark")
LOCKED: Final = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+)((?: *\\\n *--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)
LICENCE_LENGTH_MAX: Final = 200
"""Of the field License: some packages have the whole text in it, which is no name."""


class SbomError(Exception):
    """The locks do not fit each other."""


class Jar(NamedTuple):
    """A line of jars.coordinates."""

    group: str
    artifact: str
    version: str
    licences: tuple[str, ...]

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def bill_of_materials() -> Bom:
    """Return the document. Raises SbomError."""
    own = distribution("leasehold")
    bom = Bom(components=chain(_python_packages(), _jars(), _images()))
    bom.metadata.component = root = Component(
        name="leasehold",
        type=ComponentType.APPLICATION,
        version=own.version,
        purl=PackageURL("pypi", None, "leasehold", own.version),
        licenses=_licences(own),
    )
    bom.register_dependency(root, bom.components)
    return bom


def render(bom: Bom) -> str:
    text: str = JsonV1Dot6(bom).output_as_string(indent=2)
    return f"{text}\n"


def _python_packages() -> Iterator[Component]:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for name, version, digests in LOCKED.findall(lock):
        try:
            licences = _licences(distribution(name))
        except PackageNotFoundError:
            raise SbomError(f"{name} is not installed; run: make setup") from None
        yield Component(
            name=name,
            version=version,
            purl=PackageURL("pypi", None, name, version),
            hashes=[_sha256(part.partition("sha256:")[2]) for part in digests.split("--hash=")[1:]],
            licenses=licences,
        )


def _licences(package: Distribution) -> list[License]:
    said = package.metadata.get_all("License-Expression", [])
    if not said:
        classifiers = package.metadata.get_all("Classifier", [])
        told = (each for each in classifiers if each.startswith("License ::"))
        said = [each.rpartition(" :: ")[2] for each in told]
    if not said:
        words = package.metadata.get_all("License", [])
        said = [each for each in words if 0 < len(each) <= LICENCE_LENGTH_MAX and "\n" not in each]
    if len(said) > 1:  # an expression has to be alone, names need not
        return [LicenseFactory().make_with_name(each) for each in said]
    return [LicenseFactory().make_from_string(each) for each in said]


def read_jars(name: str) -> dict[str, Jar]:
    """Return the jars of infra/NAME/jars.coordinates by their files' names."""
    found = {}
    for line in (ROOT / "infra" / name / "jars.coordinates").read_text("utf-8").splitlines():
        coordinates, _, licences = line.partition(" ")
        group, artifact, version = coordinates.split(":")
        jar = Jar(group, artifact, version, tuple(filter(None, licences.split(", "))))
        found[jar.file] = jar
    return found


def read_digests(name: str) -> dict[str, str]:
    """Return the digests of infra/NAME/jars.sha256 by file."""
    lines = (ROOT / "infra" / name / "jars.sha256").read_text("utf-8").splitlines()
    return {file: digest for digest, file in (line.split() for line in lines)}


def _jars() -> Iterator[Component]:
    seen = set()
    for name in JARS:
        jars = read_jars(name)
        for file, digest in read_digests(name).items():
            if file not in jars:
                raise SbomError(f"infra/{name}/jars.coordinates lacks {file}; run: make lock")
            jar = jars[file]
            if digest not in seen:  # both have some
                seen.add(digest)
                yield Component(
                    group=jar.group,
                    name=jar.artifact,
                    version=jar.version,
                    purl=PackageURL("maven", jar.group, jar.artifact, jar.version, {"type": "jar"}),
                    hashes=[_sha256(digest)],
                    licenses=[LicenseFactory().make_from_string(each) for each in jar.licences],
                )


def _images() -> Iterator[Component]:
    for image, digest in locked_images().items():
        path, _, tag = image.partition(":")
        group, _, name = path.rpartition("/")
        yield Component(
            type=ComponentType.CONTAINER,
            group=group or None,
            name=name,
            version=tag,
            purl=PackageURL("docker", group or None, name, tag),
            hashes=[_sha256(digest.removeprefix("sha256:"))] if digest else [],
        )


def _sha256(digits: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digits.split()[0])


def coordinates_of(document: str) -> str:
    """Return the lines of jars.coordinates for what Maven's CycloneDX plugin has written."""
    lines = []
    for component in json.loads(document)["components"]:
        licences = [
            each.get("expression") or each["license"].get("id") or each["license"]["name"]
            for each in component.get("licenses", ())
        ]
        names = (component[key] for key in ("group", "name", "version"))
        lines.append(" ".join([":".join(names), ", ".join(licences)]).strip())
    return "".join(f"{line}\n" for line in sorted(lines))


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["coordinates"]:  # of `make lock`
        sys.stdout.write(coordinates_of(sys.stdin.read()))
        return 0
    try:
        text = render(bill_of_materials())
    except SbomError as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 1
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text, encoding="utf-8")
    print(f"sbom: wrote {FILE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
