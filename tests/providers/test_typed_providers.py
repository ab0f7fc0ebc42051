from pathlib import Path

import pytest

from tests.support.type_checker import mypy

GUIDE = Path(__file__).parents[2] / "docs" / "reference" / "declarations.md"
CONFIGURED = '''"""Acme signs the body, and says how old it may be."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from hookonce.providers import Delivery, Event, Reply
from hookonce.providers.kit import Configured, Hmac, Sender, SignOptions, Timestamp, field, one_event

_one = one_event(id=field("$.id"), type=field("$.type"))


def events(delivery: Delivery) -> list[Event]:
    return _one(delivery)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    return Reply() if delivery.method == "HEAD" else None


def configure(options: Mapping[str, Any]) -> Configured:
    stamp = Timestamp(header="acme-time", tolerance=timedelta(seconds=options.get("tolerance", 300)))
    scheme = Hmac(header="acme-signature", signed="{timestamp}.{body}", timestamp=stamp)

    def sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        return scheme.sign(body, secret, now, **options)

    return Configured(
        verify=scheme.verify,
        events=events,
        sign=sign,
        sender=Sender(
            id_is_signed=True, retry_horizon=None, tolerance=scheme.tolerance, handshake=handshake, sample=_one.sample
        ),
    )
'''


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What mypy finds in modules of a user's, one as it should be and each of the others with one mistake."""
    folder = tmp_path_factory.mktemp("senders")
    good = GUIDE.read_text().partition("```python\n")[2].partition("```")[0]
    modules = {
        "good": good,
        "configured": CONFIGURED,
        "misspelt": good.replace("id_is_signed", "id_is_sigend"),
        "lacking": good.replace("    retry_horizon=kit.days(2),\n", ""),
        "text": good.replace('("$.attempt",)', '("$.attempt")'),
        "namespace": CONFIGURED.replace("events=events", "evnts=events"),
        "probing": CONFIGURED.replace("handshake=handshake", "handshake=events"),
    }
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    _, said = mypy(folder, *(f"{name}.py" for name in modules))
    lines = [line for line in said if ": error:" in line]
    return {name: [line for line in lines if line.startswith(f"{name}.py:")] for name in modules} | {
        "all": lines
    }


@pytest.mark.parametrize("name", ["good", "configured"])
def test_provider_of_a_user_passes_mypy_strict(found, name):
    assert found[name] == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("misspelt", 'Unexpected keyword argument "id_is_sigend" for "Sender"'),
        ("lacking", 'Missing named argument "retry_horizon" for "Sender"'),
        ("text", 'Argument "volatile" to "Sender" has incompatible type "str"'),
        ("namespace", 'Unexpected keyword argument "evnts" for "Configured"'),
        ("probing", 'Argument "handshake" to "Sender" has incompatible type'),
    ],
)
def test_mistake_in_a_declaration_is_found_by_mypy(found, name, message):
    assert any(message in line for line in found[name]), found[name]


def test_mypy_finds_nothing_in_the_kit_itself(found):
    assert len(found["all"]) == sum(len(lines) for name, lines in found.items() if name != "all")
