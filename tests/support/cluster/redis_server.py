"""A Redis of a test's own; and TLS for one that runs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from infra.ports import find_free_port
from infra.redis.server import server_command, wait_for_redis

START_DEADLINE_S = 20.0


class RedisServer:
    """A server that can be killed, lose the end of its append-only file, and come back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = find_free_port()
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # Without fsync a write is never put off, so `written` is exact before each reply.
        command = [*server_command(self._folder, self._port), "--appendfsync", "no"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.process = process
        wait_for_redis(self.url, START_DEADLINE_S, lambda: process.poll() is None)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def _append_only_file(self) -> Path:
        return max(self._folder.glob("appendonlydir/*.incr.aof"), key=lambda path: path.name)

    def written(self) -> int:
        """Bytes of the append-only file so far: what a power cut now would keep."""
        return self._append_only_file().stat().st_size

    def restart(self, keep: int | None = None) -> None:
        self.kill()
        if keep is not None:
            os.truncate(self._append_only_file(), keep)
        self.start()


@contextmanager
def redis_in(folder: Path) -> Iterator[RedisServer]:
    """One that runs, and is gone afterwards whatever was done to it."""
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None:
            server.resume()
        server.kill()


def self_signed(folder: Path) -> tuple[Path, Path]:
    """(certificate, key) of 127.0.0.1; who trusts the one trusts nobody else."""
    certificate, key = folder / "redis.pem", folder / "redis.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def listen_by_tls(url: str, certificate: Path, key: Path) -> int:
    """Have the Redis at `url` take encrypted connections, too; → on which port."""
    port = find_free_port()
    with redis.Redis.from_url(url) as client:
        client.config_set("tls-cert-file", str(certificate), "tls-key-file", str(key))
        client.config_set("tls-auth-clients", "no")
        client.config_set("tls-ca-cert-file", str(certificate))
        client.config_set("tls-port", port)
    return port
