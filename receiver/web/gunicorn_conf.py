"""gunicorn's settings: workers with an event loop each, so that a stalled client costs a task and not a thread.

Overridable from gunicorn's command line or GUNICORN_CMD_ARGS. tests/http/test_hostile_network.py shows what
they withstand.
"""

import os
import resource
import signal
import sys
from importlib import import_module
from typing import Any

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.servers import require_own_port
from hookonce.receiver.processes.cores import cores, processes

MAX_OPEN_FILES = 65536
APPLICATION = "hookonce.receiver.app"

_door = os.environ.get("HOOKONCE_BIND") or f"0.0.0.0:{os.environ.get('PORT', '8000')}"
# `hookonce serve` says where the desk is; else it is at the door.
bind = [
    each
    for each in (*_door.split(","), os.environ.get("HOOKONCE_DESK", "door"))
    if each not in {"door", "off"}
]
worker_class = "hookonce.receiver.web.worker.LoopWorker"
workers = int(os.environ.get("WEB_CONCURRENCY") or processes(cores()))
worker_connections = 4000
keepalive = (
    75  # longer than a proxy keeps its connections to us, else one of its requests meets our hanging up
)
timeout = 30
graceful_timeout = 25
limit_request_line = 4094
limit_request_fields = 100
# Ours to judge, as some senders' headers are long; all together: `receiver.web.http.limits.HEAD_SIZE`.
limit_request_field_size = 65536
http_parser = "python"  # the C parser takes bare LF and folded headers
control_socket_disable = True  # it would lie in the home directory
forwarder_headers = ""  # SCRIPT_NAME and PATH_INFO from a proxy on this host would move the request elsewhere
# Nothing here depends on the scheme, and proxies contradict each other.
secure_scheme_headers: dict[str, str] = {}
accesslog = None
logger_class = "hookonce.receiver.web.gunicorn_log.JsonLogger"
loglevel = os.environ.get("HOOKONCE_LOG_LEVEL", "warning").lower()


def when_ready(_server: Any) -> None:  # noqa: ANN401  the same
    """Hear Ctrl-C, which `hookonce serve` has put off: as long as it loads, gunicorn answers it with a traceback."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def on_starting(server: Any) -> None:  # noqa: ANN401  gunicorn's arbiter, which has no types
    """Allow as many open files as the system lets us: the usual 1,024 are fewer than `worker_connections`.

    Workers are told how many they are: while Redis is away each keeps its share of a limit. Ours are forked from a
    process that has imported what they are made of, and nothing of the user's; gevent's must import it after patching.
    """
    _require_own_port(server.cfg.address)
    if server.cfg.worker_class_str.startswith("hookonce."):
        import_module(APPLICATION)
    os.environ["WEB_CONCURRENCY"] = str(server.cfg.workers)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _require_own_port(addresses: list[Any]) -> None:
    """End gunicorn where the desk's port is the door's too; sockets that it is handed are for who hands them."""
    desk = os.environ.get("HOOKONCE_DESK", "door")
    ports = [str(each[1]) for each in addresses if isinstance(each, tuple)]
    own = next((port for port in ports if desk.endswith(f":{port}")), None)
    if own is None or os.environ.get("LISTEN_FDS"):
        return
    ports.remove(own)
    try:
        require_own_port(desk, ports)
    except ConfigError as error:
        sys.stderr.write(f"hookonce: {error}\n")
        raise SystemExit(78) from None
