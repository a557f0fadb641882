"""Goal: the connections of a process are told by their ports, and nobody else's.

Method: real sockets of this process and of a child."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from tests.support.cluster.connections import Connection, connections_of

CHILD = """
import socket, sys
made = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(made.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_a_process_has_its_own_connections_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "-c", CHILD, str(port)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
            assert child.stdout is not None
            theirs = int(child.stdout.readline())
            ours, _ = server.accept()
            with ours:
                assert connections_of(child.pid) == {Connection(theirs, port)}
                assert Connection(port, theirs) in connections_of(os.getpid())
                assert not any(each.own == theirs for each in connections_of(os.getpid()))
            child.stdin.close()  # type: ignore[union-attr]
    assert not any(each.own == port for each in connections_of(os.getpid()))
