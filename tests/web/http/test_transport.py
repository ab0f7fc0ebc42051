"""What a client's socket may hold of what nobody has asked for."""

import asyncio
import socket

import uvloop

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.transport import Transport


def test_transport_holds_two_receptions_at_most_however_fast_a_client_sends():
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        held = runner.run(_held_after_a_torrent())

    assert 0 < held <= 2 * limits.READ_SIZE


async def _held_after_a_torrent():
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * 1024 * 1024)
        client.connect(listener.getsockname())
        accepted, _ = listener.accept()
        accepted.settimeout(0)
        client.settimeout(0)
        transport = Transport(loop)
        await loop.connect_accepted_socket(lambda: transport, accepted)
        transport.receive(limits.READ_SIZE)
        waiting = loop.create_task(transport.wait())
        await asyncio.sleep(0)
        assert client.send(b"x" * 1024 * 1024) > 4 * limits.READ_SIZE

        await waiting
        held = len(transport.receive(1024 * 1024))
        transport.close()
        return held
