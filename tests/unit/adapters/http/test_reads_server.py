"""Reads and events over TLS: who trusts the certificate is answered; nobody holds up others."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.http.reads_server import ReadsServer
from leasehold.settings.certificate_files import CertificateFiles
from tests.support.pgwire.certificates import Certificate, make_certificate

DEADLINE_S = 20


@dataclass(frozen=True)
class Told:
    status: HTTPStatus = HTTPStatus.OK
    body: Mapping[str, Any] = field(default_factory=dict)
    events: Iterator[bytes] | None = None


def answer(target: str, authorization: str, last_event: str) -> Told:
    if target == "/events":
        return Told(events=iter([b"event: row\n\n", b"event: at\n\n"]))
    return Told(body={"target": target, "authorization": authorization})


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return make_certificate(tmp_path, "r1")


@pytest.fixture
def server(certificate: Certificate) -> Iterator[ReadsServer]:
    served = CertificateFiles("LEASEHOLD_HTTP_TLS", certificate.cert, certificate.key)
    made = ReadsServer(answer, host="127.0.0.1", port=0, names=("R1.lan",), tls=served.context())
    yield made
    made.close()


def get(
    server: ReadsServer, certificate: Certificate, path: str, **headers: str
) -> tuple[int, bytes]:
    trusting = ssl.create_default_context(cafile=certificate.cert)
    connection = HTTPSConnection("localhost", server.port, timeout=DEADLINE_S, context=trusting)
    try:
        connection.request("GET", path, headers=headers)
        told = connection.getresponse()
        return told.status, told.read()
    finally:
        connection.close()


def test_answers_and_events_come_encrypted(server: ReadsServer, certificate: Certificate) -> None:
    status, body = get(server, certificate, "/v1/status", Authorization="Bearer x")
    assert (status, json.loads(body)) == (
        200,
        {"target": "/v1/status", "authorization": "Bearer x"},
    )
    assert get(server, certificate, "/events") == (200, b"event: row\n\nevent: at\n\n")


def test_names_are_those_it_was_given(server: ReadsServer, certificate: Certificate) -> None:
    assert get(server, certificate, "/", Host="r1.lan")[0] == 200
    assert get(server, certificate, "/", Host="elsewhere.example")[0] == 403


def test_nothing_is_said_in_the_clear(server: ReadsServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as plain:
        plain.sendall(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = b""
        try:
            while part := plain.recv(4096):
                told += part
        except ConnectionError:
            pass
    assert b"HTTP" not in told


def test_a_handshake_that_never_ends_keeps_nobody_waiting(
    server: ReadsServer, certificate: Certificate
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as silent:
        assert get(server, certificate, "/")[0] == 200
        assert silent.fileno() >= 0
