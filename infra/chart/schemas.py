"""Takes from Kubernetes' API description what our manifests are checked against.

`python -m infra.chart.schemas WHEEL` reads the wheel of kubernetes-validate, which has the
descriptions of all versions (22 MB), and writes the kinds that we use, of the oldest and the newest
version that the chart is for, without their words.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("kubernetes.json")
VERSIONS: Final = ("1.27", "1.37")
KINDS: Final = {
    ("apps/v1", "Deployment"): "deployment-apps-v1",
    ("apps/v1", "StatefulSet"): "statefulset-apps-v1",
    ("batch/v1", "CronJob"): "cronjob-batch-v1",
    ("batch/v1", "Job"): "job-batch-v1",
    ("networking.k8s.io/v1", "Ingress"): "ingress-networking-v1",
    ("networking.k8s.io/v1", "NetworkPolicy"): "networkpolicy-networking-v1",
    ("policy/v1", "PodDisruptionBudget"): "poddisruptionbudget-policy-v1",
    ("rbac.authorization.k8s.io/v1", "Role"): "role-rbac-v1",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "rolebinding-rbac-v1",
    ("v1", "ConfigMap"): "configmap-v1",
    ("v1", "PersistentVolumeClaim"): "persistentvolumeclaim-v1",
    ("v1", "Pod"): "pod-v1",
    ("v1", "Service"): "service-v1",
    ("v1", "ServiceAccount"): "serviceaccount-v1",
}
"""The file of each kind in the wheel."""
FOLDER: Final = "kubernetes_validate/kubernetes-json-schema/v{}.0-local-strict/{}.json"
REFERENCE: Final = "/api/_definitions.json#/$defs/"


def read_schemas(wheel: Path) -> dict[str, Any]:
    """Return a schema for each version, with the kinds among its definitions."""
    with zipfile.ZipFile(wheel) as archive:
        return {version: _schema(archive, version) for version in VERSIONS}


def _schema(archive: zipfile.ZipFile, version: str) -> dict[str, Any]:
    def load(name: str) -> Any:
        return json.loads(archive.read(FOLDER.format(version, name)))

    known = load("_definitions")["$defs"]
    found: dict[str, Any] = {file: _bare(load(file)) for file in KINDS.values()}
    waiting = list(found.values())
    while waiting:
        for name in _references(waiting.pop()):
            if name not in found:
                found[name] = _bare(known[name])
                waiting.append(found[name])
    return {"$defs": found}


def _bare(node: Any) -> Any:
    """Return a schema without words, and with references that stay within it."""
    if isinstance(node, list):
        return [_bare(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value.replace(REFERENCE, "#/$defs/") if key == "$ref" else _bare(value)
        for key, value in node.items()
        if not _is_words(key, value)
    }


def _is_words(key: str, value: Any) -> bool:
    words = key in ("description", "$schema", "$id") and isinstance(value, str)
    return words or key.startswith("x-kubernetes-")


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for each in node for name in _references(each)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"].rpartition("/")[2]] if isinstance(node.get("$ref"), str) else []
    return own + [name for each in node.values() for name in _references(each)]


def main(arguments: list[str]) -> int:
    """Write the schemas of a wheel; return the exit code."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    made = json.dumps(read_schemas(Path(arguments[0])), separators=(",", ":"), sort_keys=True)
    FILE.write_text(f"{made}\n", "utf-8")
    print(f"chart: wrote {FILE.name}, {len(made):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
