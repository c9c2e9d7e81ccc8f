"""Free ports on loopback.

They are taken from below the range the system gives to outgoing connections. A port from inside that range
can be lost while its server is down: to another program's connection, or to a client of the dead server
that reconnects so often that it meets itself (TCP simultaneous open) and then holds the port.
"""

import random
import socket
from pathlib import Path

LOWEST = 15000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


_given: set[int] = set()
"""By this process. Its owner may not have taken it yet, or be down for a moment; of a few hundred that are given at
random two are often the same."""


def free() -> int:
    """A port that nobody listens on now, and that was not given before. Another process may take it before you do: be
    ready to ask again."""
    everything = range(LOWEST, highest())
    if len(_given) > len(everything) // 2:
        _given.clear()
    for port in random.sample(everything, 200):
        if port not in _given and is_free(port):
            _given.add(port)
            return port
    raise OSError("no free port on 127.0.0.1 among 200 tried")


def highest() -> int:
    """Where the ports of outgoing connections begin; leaves us at least a thousand ports in any case."""
    found = int(EPHEMERAL.read_text().split()[0]) if EPHEMERAL.exists() else 32768
    return max(found, LOWEST + 1000)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
