"""As much of Kubernetes' API as Spark's driver asks for: pods that it makes are containers here.

Lists, watches by a hanging GET (a client comes to that where there is no WebSocket), pods and
config maps that are made and deleted. What a Role of the chart does not allow is refused.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tests.support.containers.kubelet import NAMESPACE, Kubelet, Manifest

PORT: Final = 443
WATCH_S: Final = 0.5
PREFIX: Final = f"/api/v1/namespaces/{NAMESPACE}/"
VERBS: Final = {"GET": "get", "POST": "create", "DELETE": "delete", "PATCH": "patch"}
LIST_OF: Final = {
    "pods": "PodList",
    "configmaps": "ConfigMapList",
    "persistentvolumeclaims": "PersistentVolumeClaimList",
    "services": "ServiceList",
}
CONFIGURED_S: Final = 60.0


class KubernetesApi:
    """Pods and config maps of a kubelet; its `rules` are those of a Role."""

    def __init__(self, kubelet: Kubelet, token: str, rules: list[Manifest]) -> None:
        """Begin with nothing but the pods that run. `token`: of who may ask."""
        self.asked: list[str] = []
        self.refused: list[str] = []
        self._kubelet = kubelet
        self._token = token
        self._rules = rules
        self._lock = threading.Lock()
        self._found: dict[str, dict[str, Manifest]] = {kind: {} for kind in LIST_OF}
        self._changed = threading.Condition()
        self._watchers: list[SimpleQueue[dict[str, Any]]] = []
        self._version = 1

    def put(self, kind: str, made: Manifest, status: Manifest | None = None) -> Manifest:
        """Keep an object, and tell those who watch; a pod with its status."""
        with self._lock:
            self._version += 1
            name = made["metadata"]["name"]
            told = "MODIFIED" if name in self._found[kind] else "ADDED"
            metadata = {"uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
            metadata |= made["metadata"] | {"resourceVersion": str(self._version)}
            kept = {**made, "metadata": {**metadata, "namespace": NAMESPACE}}
            if status is not None:
                kept["status"] = status
            self._found[kind][name] = kept
            if kind == "configmaps" and told == "ADDED":
                self._kubelet.add({"kind": "ConfigMap", **made})
            with self._changed:
                self._changed.notify_all()
            self._tell(kind, told, kept)
            return kept

    def start(self, made: Manifest) -> Manifest:
        """Have a pod started that was asked for, once the config maps are there that it names: it
        may come before them."""
        pending = self.put("pods", made, {"phase": "Pending"})
        threading.Thread(target=self._run, args=(made,), daemon=True).start()
        return pending

    def _run(self, made: Manifest) -> None:
        volumes = made["spec"].get("volumes", ())
        wanted = {each["configMap"]["name"] for each in volumes if "configMap" in each}
        with self._changed:
            there = self._found["configmaps"]
            if not self._changed.wait_for(lambda: wanted <= there.keys(), CONFIGURED_S):
                return  # it stays pending
        pod = self._kubelet.start(made["metadata"]["name"], made["spec"])
        address = pod.container.address
        running = {"phase": "Running", "podIP": address, "containerStatuses": []}
        self.put("pods", made, running)

    def drop(self, kind: str, name: str) -> None:
        with self._lock:
            gone = self._found[kind].pop(name, None)
            if gone is not None:
                self._tell(kind, "DELETED", gone)
        if gone is not None and kind == "pods" and name in self._kubelet.pods:
            self._kubelet.pods[name].container.kill()

    def select(self, kind: str, labels: str) -> list[Manifest]:
        """Return what has these labels, `name=value` or `name!=value` with commas."""
        with self._lock:
            return [each for each in self._found[kind].values() if _has(each, labels)]

    def find(self, kind: str, name: str) -> Manifest | None:
        with self._lock:
            return self._found[kind].get(name)

    def allows(self, token: str, verb: str, kind: str) -> bool:
        granted = any(verb in rule["verbs"] and kind in rule["resources"] for rule in self._rules)
        return token == self._token and granted

    @contextmanager
    def watching(self) -> Iterator[SimpleQueue[dict[str, Any]]]:
        queue: SimpleQueue[dict[str, Any]] = SimpleQueue()
        with self._lock:
            self._watchers.append(queue)
        try:
            yield queue
        finally:
            with self._lock:
                self._watchers.remove(queue)

    def _tell(self, kind: str, what: str, which: Manifest) -> None:
        for each in self._watchers:
            each.put({"type": what, "object": {"kind": "Pod", **which}, "of": kind})


@contextmanager
def serving(api: KubernetesApi, kubelet: Kubelet, certificate: Path, key: Path) -> Iterator[None]:
    """Serve the API at its usual name, by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with kubelet.network.entered():
        server = ThreadingHTTPServer((kubelet.network.gateway, PORT), _handler(api))
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    kubelet.network.name("kubernetes.default.svc", kubelet.network.gateway)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(api: KubernetesApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve("GET")

        def do_POST(self) -> None:
            self._serve("POST")

        def do_DELETE(self) -> None:
            self._serve("DELETE")

        def do_PATCH(self) -> None:
            self._serve("PATCH")

        def _serve(self, method: str) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"null") if length else None
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            kind, _, name = parts.path.removeprefix(PREFIX).partition("/")
            verb = VERBS[method]
            if method == "GET" and not name:
                verb = "watch" if query.get("watch") == "true" else "list"
            if method == "DELETE" and not name:
                verb = "deletecollection"
            api.asked.append(f"{verb} {kind} {name}".strip())
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            if not parts.path.startswith(PREFIX) or not api.allows(token, verb, kind):
                api.refused.append(f"{verb} {parts.path}")
                self._answer(HTTPStatus.FORBIDDEN, _status(403, f"may not {verb} {parts.path}"))
            elif verb == "watch":
                self._watch(kind, query)
            else:
                self._answer(*_done(api, verb, kind, name, query, body))

        def _watch(self, kind: str, query: Mapping[str, str]) -> None:
            if self.headers.get("Upgrade"):
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, _status(503, "no WebSocket here"))
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            labels = query.get("labelSelector", "")
            name = query.get("fieldSelector", "").removeprefix("metadata.name=")
            with api.watching() as queue, suppress(OSError):
                while True:
                    with suppress(Empty):
                        told = queue.get(timeout=WATCH_S)
                        metadata = told["object"]["metadata"]
                        has = told["of"] == kind and _has(told["object"], labels)
                        if has and name in ("", metadata["name"]):
                            line = json.dumps({k: told[k] for k in ("type", "object")}).encode()
                            self.wfile.write(b"%x\r\n%s\n\r\n" % (len(line) + 1, line))
                            self.wfile.flush()

        def _answer(self, status: HTTPStatus, body: Manifest) -> None:
            data = json.dumps(body).encode()
            with suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing."""

    return Handler


def _done(
    api: KubernetesApi, verb: str, kind: str, name: str, query: Mapping[str, str], body: Any
) -> tuple[HTTPStatus, Manifest]:
    labels = query.get("labelSelector", "")
    if verb == "list":
        field = query.get("fieldSelector", "").removeprefix("metadata.name=")
        items = [e for e in api.select(kind, labels) if field in ("", e["metadata"]["name"])]
        listed = {"apiVersion": "v1", "kind": LIST_OF[kind], "items": items}
        return HTTPStatus.OK, {**listed, "metadata": {"resourceVersion": "1"}}
    if verb == "create":
        made = api.start(body) if kind == "pods" else api.put(kind, body)
        return HTTPStatus.CREATED, made
    if verb == "deletecollection":
        for each in api.select(kind, labels):
            api.drop(kind, each["metadata"]["name"])
        return HTTPStatus.OK, _status(200, "deleted")
    found = api.find(kind, name)
    if found is None:
        return HTTPStatus.NOT_FOUND, _status(404, f"there is no {kind} {name}")
    if verb == "delete":
        api.drop(kind, name)
        return HTTPStatus.OK, _status(200, "deleted")
    if verb == "patch":
        merged = {**found, "metadata": {**found["metadata"], **body.get("metadata", {})}}
        return HTTPStatus.OK, api.put(kind, merged)
    return HTTPStatus.OK, found


def _has(found: Manifest, labels: str) -> bool:
    own = found["metadata"].get("labels", {})
    for each in filter(None, labels.split(",")):
        name, _, value = each.partition("=")
        if (own.get(name.rstrip("!")) == value) == name.endswith("!"):
            return False
    return True


def _status(code: int, words: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Success" if code < 400 else "Failure",
        "message": words,
        "code": code,
    }
