"""Goal: whoever runs the commands of the page on Kubernetes finds what they name.

Method: each command is held against what Helm makes of the set of values that its block is for.
What runs inside a pod is run there by `tests/integration/infra/test_pods.py`.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from infra.chart.rendering import CHART, ROOT, manifests, value_files
from tests.support.documents.blocks import Block, blocks, commands

PAGE: Final = ROOT / "docs" / "how-to" / "run-on-kubernetes.md"
BLOCKS: Final = [block for block in blocks(PAGE) if block.mark == "kubernetes"]
KINDS: Final = {"deploy": "Deployment", "statefulset": "StatefulSet"}


def words_of(block: Block) -> Iterator[list[str]]:
    for command in commands(block):
        yield shlex.split(command.text.replace("$(", "'$(").replace(")", ")'"))


def named(set_of_values: str) -> dict[str, set[str]]:
    """Return the Secrets that processes of a set of values are given, with their keys."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in manifests(set_of_values):
        spec = each.get("spec") or {}
        spec = spec["jobTemplate"]["spec"] if each["kind"] == "CronJob" else spec
        pod = spec.get("template", {}).get("spec", spec)
        for volume in pod.get("volumes", ()) if isinstance(pod, Mapping) else ():
            for source in volume.get("projected", {}).get("sources", ()):
                secret = source["secret"]
                found[secret["name"]] |= {item["key"] for item in secret["items"]}
    return dict(found)


def handed_through(set_of_values: str) -> set[str]:
    """Return the Secrets of which backups are given all keys, as variables."""
    return {
        source["secretRef"]["name"]
        for each in manifests(set_of_values)
        if each["kind"] == "CronJob"
        for container in each["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        for source in container.get("envFrom", ())
    }


def made(block: Block) -> dict[str, set[str]]:
    """Return the Secrets that a block makes, with their keys."""
    found: dict[str, set[str]] = {}
    for words in words_of(block):
        if words[:4] == ["kubectl", "create", "secret", "generic"]:
            keys = [word.partition("=")[2].partition("=")[0] for word in words[5:]]
            assert all(word.startswith(("--from-literal=", "--from-file=")) for word in words[5:])
            found[words[4]] = set(keys)
    return found


@pytest.mark.parametrize("block", [b for b in BLOCKS if made(b)], ids=lambda block: block.said)
def test_the_secrets_that_are_made_are_those_that_are_mounted(block: Block) -> None:
    found = made(block)
    through = handed_through(block.said)
    assert all(found.pop(name, None) for name in through)
    assert found == named(block.said)


def check(words: list[str], there: list[dict[str, Any]], values: Path) -> None:
    """Hold a command against manifests. Raises AssertionError."""
    match words:
        case ["kubectl", "create", "secret", "generic", *_]:
            return
        case ["helm", "install" | "upgrade", "leasehold" | "restored", chart, "-f", file]:
            assert (ROOT / chart, ROOT / file) == (CHART, values)
        case ["kubectl", "rollout", "status", name] | ["kubectl", "exec", name, "--", *_]:
            kind, slash, own = name.partition("/")
            if not slash:  # a pod of a StatefulSet
                kind, own = "statefulset", name.rpartition("-")[0]
            names = [each["metadata"]["name"] for each in there if each["kind"] == KINDS[kind]]
            assert own in names
        case ["kubectl", "create", "job", _, source] if source.startswith("--from=cronjob/"):
            names = [each["metadata"]["name"] for each in there if each["kind"] == "CronJob"]
            assert source.removeprefix("--from=cronjob/") in names
        case _:
            raise AssertionError(f"nothing holds this against the chart: {words}")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.said}-{block.line}")
def test_every_command_names_what_is_there(block: Block) -> None:
    there = manifests(block.said)
    for words in words_of(block):
        check(words, there, value_files()[block.said])


BROKEN: Final = {
    "another chart": "helm install leasehold infra/helm -f infra/helm/leasehold/ci/minimal.yaml",
    "other values": (
        "helm install leasehold infra/helm/leasehold -f infra/helm/leasehold/ci/secure.yaml"
    ),
    "a workload that there is not": "kubectl rollout status statefulset/leasehold-masters",
    "a CronJob that there is not": "kubectl create job one --from=cronjob/leasehold-backup",
    "a word that nobody knows": "kubectl get pods",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_command_that_names_something_else_would_be_seen(broken: str) -> None:
    with pytest.raises(AssertionError):
        check(shlex.split(BROKEN[broken]), manifests("minimal"), value_files()["minimal"])
