"""A Redis Cluster: each key on the node that has its slot.

    redis+cluster://user:password@host1:6379,host2:6379      (or rediss+cluster)

A command of several keys needs them in one slot, and ids are spread over all. So each key is asked for by a command of
its own, and each node for all of its keys at once. What a node does not answer stays unknown; the ledger knows it.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Self
from urllib.parse import unquote

import redis
from redis.cluster import ClusterNode, RedisCluster

from hookonce.receiver.config.server_urls import hosts_of, split
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker

_REREAD_INTERVAL = 0.5
"""Seconds between two looks at which node has which slots."""
_ASKED = 3
"""Times that a key is asked for: where it was, where it has moved, where it is being moved to."""
_ELSEWHERE = (
    redis.exceptions.MovedError,
    redis.exceptions.ClusterError,
    redis.ConnectionError,
    redis.TimeoutError,
)
"""Answers after which another node may have the slot."""

Command = Sequence[Any]
"""Name (as bytes where its answer is wanted as it is), key, arguments."""


class Cluster:
    """A client of a cluster, which is connected when it is first asked; other commands are redis-py's."""

    def __init__(self, url: str, **options: Any) -> None:  # noqa: ANN401  redis-py's own options
        parts = split(url)
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        self._hosts = hosts_of(parts)
        self._options = {
            "username": unquote(user) or None,
            "password": unquote(password) or None,
            "ssl": parts.scheme.startswith("rediss"),
            **options,
        }
        self._lock = Lock()
        self._cluster: Any = None
        self._reread_at = 0.0
        self._breakers: defaultdict[str, CircuitBreaker] = defaultdict(CircuitBreaker)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  of redis-py's client
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._connected(), name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to all nodes."""
        with self._lock:
            if self._cluster is not None:
                self._cluster.close()
                self._cluster = None

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Return the answer to each command, in order: an error for what no node has answered.

        Raises `redis.RedisError` where no node has answered lately.
        """
        answers: list[Any] = [None] * len(commands)
        waiting = list(range(len(commands)))
        for _ in range(_ASKED):
            for node, numbers in self._by_node(commands, waiting, answers).items():
                for number, answer in zip(numbers, self._answers(node, commands, numbers), strict=True):
                    answers[number] = answer
            if any(isinstance(answers[n], _ELSEWHERE) for n in waiting):
                self.reread()
            waiting = [n for n in waiting if isinstance(answers[n], redis.exceptions.AskError)]
            if not waiting:
                break
        primaries = self._connected().get_primaries()
        if all(self._breakers[node.name].is_open for node in primaries):
            raise redis.ConnectionError("no node of the cluster answers")
        return answers

    def reread(self) -> None:
        """Read anew which node has which slots, if that was not just done."""
        if time.monotonic() - self._reread_at < _REREAD_INTERVAL:
            return
        self._reread_at = time.monotonic()
        with suppress(Exception):  # a slot without a node, or an answer that makes the library raise anything
            self._connected().nodes_manager.initialize()

    def _connected(self) -> Any:  # noqa: ANN401  redis-py's client
        with self._lock:
            if self._cluster is None:
                nodes = [ClusterNode(host, port) for host, port in self._hosts]  # type: ignore[no-untyped-call]
                self._cluster = RedisCluster(startup_nodes=nodes, **self._options)
            return self._cluster

    def _by_node(
        self, commands: Sequence[Command], waiting: Sequence[int], answers: Sequence[Any]
    ) -> dict[tuple[str, bool], list[int]]:
        """Return which commands each node is asked, and whether its slot is on the move to it."""
        found: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
        for n in waiting:
            error = answers[n]
            if isinstance(error, redis.exceptions.AskError):
                is_moving = not isinstance(error, redis.exceptions.MovedError)
                found[f"{error.host}:{error.port}", is_moving].append(n)
            else:
                found[self._owner_of(commands[n][1]), False].append(n)
        return found

    def _owner_of(self, key: str) -> str:
        """Return the name of the node that has a key's slot; empty where no node has it."""
        cluster = self._connected()
        try:
            return str(cluster.nodes_manager.get_node_from_slot(cluster.keyslot(key)).name)
        except redis.exceptions.SlotNotCoveredError:
            return ""

    def _answers(
        self, node: tuple[str, bool], commands: Sequence[Command], numbers: Sequence[int]
    ) -> Sequence[Any]:
        """Ask one node for what it should have."""
        name, is_moving = node
        breaker = self._breakers[name]
        if breaker.is_open:
            return [redis.ConnectionError("this node did not answer lately")] * len(numbers)
        cluster = self._connected()
        try:
            with cluster.get_redis_connection(cluster.get_node(node_name=name)).pipeline(
                transaction=False
            ) as pipeline:
                for n in numbers:
                    if is_moving:
                        pipeline.execute_command("ASKING")
                    pipeline.execute_command(*commands[n])
                answers: Sequence[Any] = pipeline.execute(raise_on_error=False)
        except (
            redis.RedisError,
            OSError,
            AttributeError,
        ) as error:  # the last, of a node that is not known yet
            breaker.failed()
            return [redis.ConnectionError(type(error).__name__)] * len(numbers)
        breaker.succeeded()
        return answers[1::2] if is_moving else answers
