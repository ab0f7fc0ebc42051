"""A Redis Cluster of real Valkey servers: primaries that share the slots, and replicas that take over."""

import contextlib
import subprocess

import redis

from hookonce.receiver.dev.embedded import binaries
from tests.support.ports import free_ports
from tests.support.waiting import until

AWAY = (redis.RedisError, OSError)
SLOTS = 16384


class RedisCluster:
    """`primaries` nodes, and as many replicas where `replicas` is true; made by `started`."""

    def __init__(self, directory, primaries=3, *, replicas=False):
        self._directory = directory
        self._nodes = primaries * (2 if replicas else 1)
        self._primaries = primaries
        self.ports = []
        self._buses = {}
        self._processes = {}

    @property
    def url(self):
        return "redis+cluster://" + ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def client(self, port):
        return redis.Redis(port=port, decode_responses=True)

    def kill(self, port):
        self._processes[port].kill()
        self._processes[port].wait()

    def owner_of(self, slot):
        """The port of the primary that has a slot."""
        alive = next(port for port in self.ports if self._processes[port].poll() is None)
        with self.client(alive) as node:
            for first, last, (_, port, *_), *_ in node.execute_command("CLUSTER SLOTS"):
                if first <= slot <= last:
                    return port
        raise LookupError(slot)

    def ids(self):
        found = {}
        for port in self.ports:
            with self.client(port) as node:
                found[port] = node.execute_command("CLUSTER MYID")
        return found

    def move_slot(self, slot, target):
        """Move a slot with its keys while others ask for them, as `valkey-cli --cluster reshard` does."""
        ids, source = self.ids(), self.owner_of(slot)
        with self.client(source) as giver, self.client(target) as taker:
            taker.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
            giver.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])
            while keys := giver.execute_command("CLUSTER GETKEYSINSLOT", slot, 10):
                giver.execute_command("MIGRATE", "127.0.0.1", target, "", 0, 5000, "KEYS", *keys)
        self.give_slot(slot, source, target)

    def give_slot(self, slot, source, target):
        """Have all primaries know to whom a slot went, and in which epoch: with an older one it would go back."""
        owner = self.ids()[target]
        others = [port for port in self.ports[: self._primaries] if port not in {source, target}]
        for port in (target, source, *others):
            with self.client(port) as node:
                node.execute_command("CLUSTER SETSLOT", slot, "NODE", owner)
        until(lambda: len({self._epoch(port) for port in self.ports}) == 1)

    def _epoch(self, port):
        with self.client(port) as node:
            return node.execute_command("CLUSTER INFO")["cluster_current_epoch"]

    def _start(self):
        for number in range(self._nodes):
            port, bus = free_ports(2)
            self._buses[port] = bus
            directory = self._directory / f"node-{number}"
            directory.mkdir(parents=True)
            file = directory / "valkey.conf"
            file.write_text(
                f'port {port}\nbind 127.0.0.1\nsave ""\ndir {directory}\ncluster-enabled yes\n'
                f"cluster-port {bus}\ncluster-node-timeout 1000\nrepl-diskless-sync-delay 0\n"
            )
            self._processes[port] = subprocess.Popen(
                [binaries.valkey(), file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            self.ports.append(port)
            with self.client(port) as node:
                until(node.ping, away=AWAY, process=self._processes[port])
        self._join()

    def _join(self):
        first = self.ports[0]
        ids = self.ids()
        for number, port in enumerate(self.ports):
            with self.client(port) as node:
                node.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
                if port != first:
                    node.execute_command("CLUSTER MEET", "127.0.0.1", first, self._buses[first])
                if number < self._primaries:
                    begin, end = (SLOTS * n // self._primaries for n in (number, number + 1))
                    node.execute_command("CLUSTER ADDSLOTSRANGE", begin, end - 1)
        for port in self.ports[self._primaries :]:
            primary = self.ports[self.ports.index(port) - self._primaries]
            with self.client(port) as node:
                until(
                    lambda node=node, primary=primary: (
                        ids[primary] in str(node.execute_command("CLUSTER NODES"))
                    ),
                    away=AWAY,
                )
                node.execute_command("CLUSTER REPLICATE", ids[primary])
        for port in self.ports:
            until(lambda port=port: self._is_joined(port), seconds=30)

    def _is_joined(self, port):
        with self.client(port) as node:
            told = node.execute_command("CLUSTER INFO")
            is_up = node.info("replication").get("master_link_status", "up") == "up"
        return is_up and told["cluster_state"] == "ok" and int(told["cluster_known_nodes"]) == self._nodes

    @classmethod
    @contextlib.contextmanager
    def started(cls, directory, primaries=3, *, replicas=False):
        made = cls(directory, primaries, replicas=replicas)
        try:
            made._start()
            yield made
        finally:
            for process in made._processes.values():
                process.kill()
                process.wait()
