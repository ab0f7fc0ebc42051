"""Real brokers that tests start, kill and start again: nats-server and rabbitmq-server of Debian, and moto's SQS."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nats
import pytest
import requests

from hookonce.receiver.config.addresses import Address
from hookonce.receiver.outbound.brokers import broker
from hookonce.receiver.outbound.brokers.port import NotConfirmed
from tests.support.ports import free_ports, is_free
from tests.support.waiting import until

SBIN = f"/usr/lib/rabbitmq/bin:{os.environ['PATH']}:/usr/sbin"
AWS = {
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "eu-central-1",
}
STREAM = "EVENTS"


class Server:
    """A server in a process of its own, at a port that stays; its data survive a kill."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.directory.mkdir(exist_ok=True)
        (self.port,) = free_ports(1)
        self._process = None

    def start(self):
        self._process = subprocess.Popen(
            self.command(),
            cwd=self.directory,  # RabbitMQ leaves dumps where it is started
            env=os.environ | self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        until(self.is_up, seconds=60)
        return self

    def kill(self):
        os.killpg(self._process.pid, signal.SIGKILL)  # RabbitMQ's own program is a child of a shell
        self._process.wait()
        until(lambda: is_free(self.port))

    def environment(self):
        return {}

    def is_up(self):
        return not is_free(self.port)


class Nats(Server):
    def command(self):
        store = self.directory / "jetstream"
        return [program("nats-server"), "-js", "-sd", str(store), "-a", "127.0.0.1", "-p", str(self.port)]

    def is_up(self):
        return not is_free(self.port) and self.ask(is_ready)

    def url(self, subject="events.paid"):
        return f"nats://127.0.0.1:{self.port}/{subject}"

    def ask(self, question):
        """Return what a coroutine function returns of a JetStream context."""

        async def asked():
            client = await nats.connect(f"nats://127.0.0.1:{self.port}", allow_reconnect=False)
            try:
                return await question(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(asked())

    def make_stream(self, name=STREAM, subjects=("events.>",), **options):
        async def make(js):
            with contextlib.suppress(nats.js.errors.NotFoundError):
                await js.delete_stream(name)
            await js.add_stream(name=name, subjects=list(subjects), **options)

        self.ask(make)

    def messages(self, name=STREAM):
        """Return all messages of a stream: (headers, data)."""

        async def read(js):
            last = (await js.stream_info(name)).state.last_seq
            return [await js.get_msg(name, seq=n + 1) for n in range(last)]

        return [(each.headers or {}, each.data) for each in self.ask(read)]

    def count(self, name=STREAM):
        async def count(js):
            return (await js.stream_info(name)).state.messages

        return self.ask(count)


async def is_ready(js):
    try:
        await js.account_info()
    except Exception:  # noqa: BLE001  it starts
        return False
    return True


def program(name):
    found = shutil.which(name, path=SBIN)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


class Rabbit(Server):
    def __init__(self, directory):
        super().__init__(directory)
        self._distribution, self._epmd = free_ports(2)

    def command(self):
        return [program("rabbitmq-server")]

    def environment(self):
        return {
            "HOME": str(self.directory),
            "ERL_CRASH_DUMP": str(self.directory / "crash"),
            "RABBITMQ_NODENAME": f"hookonce-{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "ERL_EPMD_PORT": str(self._epmd),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_RELAXED_COMMAND_CHECK": "1",
            "RABBITMQ_BASE": str(self.directory),
            "RABBITMQ_MNESIA_BASE": str(self.directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.directory / "log"),
            "RABBITMQ_LOGS": str(self.directory / "log" / "node.log"),
            "RABBITMQ_PID_FILE": str(self.directory / "pid"),
            "RABBITMQ_CONFIG_FILE": str(self.directory / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
        }

    def is_up(self):
        if is_free(self.port):
            return False
        asked = broker(Address.parse(f"amqp://guest:guest@127.0.0.1:{self.port}/?exchange=amq.topic"))

        async def look():
            try:
                await asked.look()
            except NotConfirmed:
                return False
            finally:
                await asked.close()
            return True

        return asyncio.run(look())

    def url(self, place="queue=orders"):
        return f"amqp://guest:guest@127.0.0.1:{self.port}/?{place}"

    def stop(self):
        self.kill()
        subprocess.run(["epmd", "-port", str(self._epmd), "-kill"], check=False, capture_output=True)


SQS_SERVER = """
import sys, os, threading
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
calls = []
application = DomainDispatcherApplication(create_backend_app)
def counted(environ, start):
    if environ["PATH_INFO"] == "/calls":
        start("200 OK", [("content-type", "text/plain")])
        return ["\\n".join(calls).encode()]
    calls.append(environ.get("HTTP_X_AMZ_TARGET", ""))
    return application(environ, start)
server = make_server("127.0.0.1", 0, counted)
print(server.port, flush=True)
server.serve_forever()
"""


@contextlib.contextmanager
def sqs_server():
    """Run an SQS of moto's in a process of its own, which counts its calls; its address."""
    pytest.importorskip("moto")
    with subprocess.Popen(
        [sys.executable, "-c", SQS_SERVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | AWS,
    ) as server:
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.kill()


def sqs_calls(endpoint):
    return requests.get(f"{endpoint}/calls", timeout=60).text.split()
