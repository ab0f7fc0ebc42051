"""The server as agents reach it: a process on stdio, and HTTP with a token of each caller."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest
import requests

from hookonce.receiver.desk.stats import get_stats
from tests.mcp.conftest import Agent, connected, told
from tests.support.ports import free_ports
from tests.support.waiting import until


def text_of(answer):
    assert not answer.is_error, answer
    return told("".join(part.text for part in answer.content))


def test_stdio_server_answers(ledger):
    from mcp.client.stdio import (  # noqa: PLC0415  a second of importing, as below
        StdioServerParameters,
        stdio_client,
    )

    inbox, url = ledger
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "hookonce.receiver.cli", "mcp", "--url", url, "--read-only"],
        env={"HOOKONCE_API_TOKEN": inbox.tokens["read"], "PATH": os.environ["PATH"]},
    )

    async def ask():
        # The package's default is what stderr was when it was imported: another test's.
        async with connected(stdio_client(parameters, errlog=sys.__stderr__)) as client:
            return await client.call_tool("overview", {})

    assert text_of(asyncio.run(ask())).known["dead"] == 5


def test_token_does_not_give_way_to_passwords_of_a_netrc(ledger, tmp_path, monkeypatch):
    from hookonce.receiver.api.mcp.server import inbox as desk_of  # noqa: PLC0415

    inbox, url = ledger
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))

    assert desk_of(url, inbox.tokens["read"]).ask(get_stats).dead == 5


@pytest.fixture(scope="module")
def served(ledger):
    """A server on HTTP: its URL, and the inbox behind it."""
    inbox, url = ledger
    [port] = free_ports(1)
    command = [
        sys.executable,
        "-m",
        "hookonce.receiver.cli",
        "mcp",
        "--url",
        url,
        "--http",
        f"127.0.0.1:{port}",
    ]
    with subprocess.Popen(command, env={"PATH": os.environ["PATH"]}) as process:
        until(lambda: answers(port), process=process, away=OSError)
        yield inbox, f"http://127.0.0.1:{port}/mcp"
        process.terminate()
        process.wait(15)


def answers(port):
    socket.create_connection(("127.0.0.1", port), timeout=10).close()
    return True


def rpc(url, method, token=None, **parameters):
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    return requests.post(url, json=body, headers=headers, timeout=20)


def test_http_server_asks_with_the_token_of_its_caller(served):
    inbox, url = served

    assert rpc(url, "tools/list").status_code == 401
    listed = {scope: rpc(url, "tools/list", inbox.tokens[scope]) for scope in ("read", "agent")}
    assert max(len(answer.content) for answer in listed.values()) <= 16_000
    assert [len(answer.json()["result"]["tools"]) for answer in listed.values()] == [11, 14]
    names = {
        scope: told(
            rpc(url, "tools/call", inbox.tokens[scope], name="ask", arguments={"action": "get_token"}).json()[
                "result"
            ]["content"][0]["text"]
        ).known["name"]
        for scope in ("read", "replay")
    }
    assert names == {"read": "read", "replay": "replay"}
    refused = rpc(url, "tools/call", "made up", name="overview", arguments={}).json()["result"]
    assert refused["isError"]
    assert "holds no bearer token" in refused["content"][0]["text"]


def test_page_of_another_site_is_refused(served):
    inbox, url = served
    headers = {
        "Authorization": f"Bearer {inbox.tokens['read']}",
        "Accept": "application/json, text/event-stream",
        "Origin": "http://evil.example",
        "Host": "evil.example",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}

    assert requests.post(url, json=body, headers=headers, timeout=20).status_code in {403, 421}


def test_what_answers_must_be_the_api(ledger, monkeypatch):
    inbox, url = ledger
    monkeypatch.setattr("hookonce.receiver.remote.client.time.sleep", lambda _: None)

    assert "does not answer" in Agent("http://127.0.0.1:1", "x").refusal("get_stats")
    assert "no inbox answers at this path" in Agent(url + "/elsewhere", inbox.tokens["read"]).refusal(
        "get_stats"
    )
    assert "the token is unknown" in Agent(url, "hookonce_made_up").refusal("get_stats")


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http://h/?a=1"])
def test_address_is_a_receivers(url):
    from hookonce.receiver.api.mcp.server import inbox as desk_of  # noqa: PLC0415
    from hookonce.receiver.remote.errors import BadAddress  # noqa: PLC0415

    with pytest.raises(BadAddress, match="expected the address of an inbox"):
        desk_of(url, "x")


def test_plain_http_to_another_machine_is_its_operators_business():
    from hookonce.receiver.api.mcp.server import inbox as desk_of  # noqa: PLC0415

    assert desk_of("http://receiver:8000", "x")
