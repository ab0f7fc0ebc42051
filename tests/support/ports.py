"""Ports for servers that tests start."""

import random
import socket
from pathlib import Path

CLIENTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count):
    """Some that are free, of those that no client is given: so they are free when the servers start."""
    first_of_clients = int(CLIENTS.read_text().split()[0]) if CLIENTS.exists() else 32768
    candidates = range(first_of_clients // 2, first_of_clients)
    found = set()
    while len(found) < count:
        port = random.choice(candidates)  # noqa: S311  a port, no secret
        if is_free(port):
            found.add(port)
    return list(found)


def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
