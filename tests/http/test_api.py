"""The admin API behind gunicorn: bodies are read as they are framed, and refused ones end the connection."""

import json
import uuid

import pytest

from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.database import connections
from tests.http.conftest import OURS
from tests.support.raw_http import chunked, request

REPLAYS = "/api/v1/replays"


@pytest.fixture
def authorization(server):
    with connections.connect(server.database_url) as connection:
        return {
            "Authorization": f"Bearer {api_tokens.create(connection, uuid.uuid4().hex, [Scope.ADMIN], None, 'a test')}"
        }


@pytest.mark.parametrize("is_chunked", [False, True])
def test_api_reads_a_body_however_it_is_framed(server, authorization, is_chunked):
    body = json.dumps({"events": [9999]}).encode()
    headers = authorization | {"Content-Type": "application/json"}
    if is_chunked:
        headers["Transfer-Encoding"] = "chunked"
        data = request(target=REPLAYS, headers=headers) + chunked(body[:5], body[5:])
    else:
        data = request(target=REPLAYS, headers=headers, body=body)

    answer = server.exchange(data)

    assert (answer.status, "9999" in answer.document["detail"]) == (404, True)


def test_api_refuses_a_body_that_ends_early(server, authorization):
    headers = authorization | {"Content-Type": "application/json", "Content-Length": "100"}

    answer = server.exchange(
        request(target=REPLAYS, headers=headers, body=b'{"events": [1]}'), half_close=True
    )

    assert (answer.status, answer.code) == (400, "bad_body")


@OURS
def test_api_hangs_up_on_a_body_nobody_may_send(server):
    answer = server.exchange(request(target=REPLAYS, headers={"Content-Length": "1000000"}))

    assert (answer.status, answer.headers["connection"]) == (401, "close")
