from types import SimpleNamespace

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.cli.dev.introduction import introduce_source, trigger_line
from hookonce.receiver.source import Source

WEB = Source("stripe", load("stripe"), ("whsec_of_the_tests",))
QUEUE = Source(
    "orders", load("stripe"), ("whsec_of_the_tests",), broker="nats://user:pass@queue.example/orders"
)


@pytest.fixture
def running():
    return SimpleNamespace(
        hook=lambda name: f"http://127.0.0.1:8000/hooks/{name}",
        made_up={},
        settings=SimpleNamespace(sources={"orders": QUEUE, "stripe": WEB}),
    )


def test_source_of_a_broker_is_introduced_with_its_queue_and_nothing_to_send_to(running, capsys):
    introduce_source(running, QUEUE)

    said = capsys.readouterr().out
    assert said.splitlines() == [
        "orders        taken from nats://queue.example/orders",
        "              by `hookonce consume orders`, in another terminal here",
    ]
    assert trigger_line(running).startswith("hookonce trigger stripe ")


def test_source_of_the_web_is_introduced_with_its_url_and_its_program(running, capsys):
    introduce_source(running, WEB)

    said = capsys.readouterr().out
    assert "http://127.0.0.1:8000/hooks/stripe" in said
    assert "stripe listen --forward-to" in said


def test_made_up_secret_of_64_digits_stands_in_one_line_of_a_terminal(running, capsys, monkeypatch):
    secret = "0f" * 32
    running.made_up = {"acme": "ACME_WEBHOOK_SECRET"}
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")

    introduce_source(running, Source("acme", load("stripe"), (secret,)))

    assert f"\n{' ' * 16}{secret}\n" in capsys.readouterr().out
