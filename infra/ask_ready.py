"""Asks the process of this container whether it is ready: the health check of our images.

Exit code 0: it is. 1: it is not, and what it says is printed. It imports next to nothing, since it
is started every few seconds.
"""

import os
import socket
import sys

PORT = int(os.environ.get("LEASEHOLD_METRICS_PORT") or 9461)
TIMEOUT_S = 5.0
ANSWER_BYTES_MAX = 4096
ASKED = b"GET /readyz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"


def ask() -> tuple[bool, str]:
    """Return whether it is ready, and its words."""
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", PORT), TIMEOUT_S) as talk:
            talk.settimeout(TIMEOUT_S)
            talk.sendall(ASKED)
            while len(answer) < ANSWER_BYTES_MAX and (more := talk.recv(ANSWER_BYTES_MAX)):
                answer += more
    except OSError as error:
        return False, f"port {PORT} does not answer: {error}"
    head, _, words = answer.partition(b"\r\n\r\n")
    return head.split(b" ", 2)[1:2] == [b"200"], words.decode("utf-8", "replace").strip()


if __name__ == "__main__":
    READY, WORDS = ask()
    print(WORDS)
    sys.exit(not READY)
