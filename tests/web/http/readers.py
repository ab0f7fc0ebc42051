"""Three readers of the same bytes: ours, gunicorn's and h11."""

from typing import NamedTuple

import h11
from gunicorn.config import Config
from gunicorn.http.errors import ParseException
from gunicorn.http.parser import RequestParser

from hookonce.receiver.processes.waits import run
from hookonce.receiver.web import gunicorn_conf
from hookonce.receiver.web.http.body_stream import BodyStream
from hookonce.receiver.web.http.head import BadHead, HeadReader, shape_of


class Read(NamedTuple):
    """A request as it was understood: what a signature, a path or a proxy could be fooled by."""

    method: str
    target: str
    headers: tuple
    body: bytes


REFUSED = None
"""What a reader gives that takes bytes for no request, or for a part of one."""


class Nothing:
    """A connection on which nothing more comes."""

    async def next_bytes(self, _size):
        return b""

    async def next_slice(self):
        pass

    async def is_taken_whole(self, size):
        pass


def ours(data, step=None):
    reader = HeadReader(
        gunicorn_conf.limit_request_line,
        gunicorn_conf.limit_request_fields,
        gunicorn_conf.limit_request_field_size,
    )
    try:
        read = None
        for at in range(0, len(data), step or max(len(data), 1)):
            read = reader.receive(data[at : at + (step or len(data))])
            if read is not None:
                break
        if read is None:
            return REFUSED
        head, rest = read
        rest += data[at + step :] if step else b""
        body = run(BodyStream(Nothing(), head, rest, None).read())
    except (BadHead, OSError, ValueError):
        return REFUSED
    headers = tuple(zip(head.names.lower, head.values, strict=True))
    return Read(head.method, head.target, headers, body)


def familiar(like, data):
    """What the shape of the request `like` reads."""
    head, _ = HeadReader(4094, 100, 65536).receive(like)
    read = shape_of(head).read(data)
    if read is None:
        return None
    head, body = read
    return Read(head.method, head.target, tuple(zip(head.names.lower, head.values, strict=True)), body)


def configuration():
    config = Config()
    for name in vars(gunicorn_conf):
        if name in config.settings:
            config.set(name, getattr(gunicorn_conf, name))
    config.set("header_map", "drop")
    return config


CONFIGURATION = configuration()


def gunicorns(data):
    try:
        request = next(RequestParser(CONFIGURATION, iter([data]), ("127.0.0.1", 1)))
        body = request.body.read()
    except (ParseException, StopIteration, OSError, ValueError):
        return REFUSED
    if len(body) < int(dict(request.headers).get("CONTENT-LENGTH", 0)):
        return REFUSED  # cut off; it leaves that to the application
    headers = [(name.lower(), value) for name, value in request.headers]
    return Read(request.method, request.uri, forgiven(headers), body)


def h11s(data):
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=200_000)
    try:
        connection.receive_data(data)
        request = connection.next_event()
        if not isinstance(request, h11.Request):
            return REFUSED
        body = b""
        while isinstance(event := connection.next_event(), h11.Data):
            body += bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            return REFUSED
    except h11.RemoteProtocolError:
        return REFUSED
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers]
    return Read(request.method.decode(), request.target.decode("latin-1"), forgiven(headers), body)


def forgiven(headers):
    """Headers without those that ours leaves out: one with an underscore, and a Content-Type that came before."""
    types = [pair for pair in headers if pair[0] == "content-type"]
    left = [pair for pair in headers if "_" not in pair[0] and pair[0] != "content-type"]
    first = next((at for at, pair in enumerate(p for p in headers if "_" not in p[0]) if pair in types), 0)
    return tuple(left[:first] + types[:1] + left[first:])
