"""A schema registry in this process, for tests about what goes wrong with one: it says what it is
told to say. What a real one does is tested with a real one."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Answer = tuple[int, Any]


class RegistryDouble:
    """Subjects with their schemas, numbered from 1. `faults` are answered first, each once (None:
    the connection ends without an answer); `seen` are the requests."""

    def __init__(self) -> None:
        self.schemas: list[tuple[str, str]] = []
        self.rules: dict[str, str] = {}
        self.faults: list[Answer | None] = []
        self.always: Answer | None = None
        self.compatible = True
        self.reasons: list[str] = []
        self.seen: list[tuple[str, str, str]] = []
        self.url = ""

    def number(self, subject: str, text: str) -> int:
        if (subject, text) not in self.schemas:
            self.schemas.append((subject, text))
        return self.schemas.index((subject, text)) + 1

    def answer(self, method: str, path: str, body: Any) -> Answer:
        parts = path.partition("?")[0].strip("/").split("/")
        match method, parts:
            case "POST", ["subjects", subject, "versions"]:
                return 200, {"id": self.number(subject, body["schema"])}
            case "POST", ["subjects", subject]:
                if (subject, body["schema"]) not in self.schemas:
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                return 200, {"id": self.number(subject, body["schema"])}
            case "GET", ["schemas", "ids", number]:
                return 200, {"schema": self.schemas[int(number) - 1][1]}
            case "POST", ["compatibility", "subjects", _, "versions"]:
                return 200, {"is_compatible": self.compatible, "messages": self.reasons}
            case "PUT", ["config", subject]:
                self.rules[subject] = body["compatibility"]
                return 200, body
        return 404, {"error_code": 404, "message": "no such path"}


class _Handler(BaseHTTPRequestHandler):
    registry: RegistryDouble

    def _serve(self) -> None:
        registry = self.registry
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"null")
        registry.seen.append((self.command, self.path, self.headers.get("Authorization", "")))
        answer: Answer | None = registry.always or registry.answer(self.command, self.path, body)
        if registry.faults:
            answer = registry.faults.pop(0)
        if answer is None:
            self.connection.close()
            return
        status, content = answer
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = _serve  # noqa: N815 - names that http.server looks for

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone."""


@contextmanager
def registry_double(tls: ssl.SSLContext | None = None) -> Iterator[RegistryDouble]:
    """A registry on a free port; with `tls` by HTTPS."""
    registry = RegistryDouble()
    handler = type("Handler", (_Handler,), {"registry": registry})
    with _Server(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        registry.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
