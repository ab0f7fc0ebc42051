"""The files of a new provider: a module, a captured delivery, and a test that signs without our help."""

import hashlib
import hmac
import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_MODULE = string.Template('''\
"""$Title signs the body with HMAC-SHA256, in hex behind `sha256=`.

Say here what surprises: whether the id is the same on every retry, what is not covered by the signature, for how
long it retries. Then link to the sender's own page.

https://example.com/docs/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(id="$$.id", type="$$.type")
sender = kit.Sender(
    scheme=kit.Hmac(header="x-$dashed-signature", prefix="sha256="),
    id_is_signed=True,
    retry_horizon=None,  # how long after an event it may still come again: kit.days(3)
    identity=kit.told_apart_by("$$.id"),  # what makes two events two, if all else is equal
)
''')

_TEST = string.Template("""\
import hashlib
import hmac
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.conformance import CHECKS, cases
from hookonce.providers.kit.registry import load

HERE = Path(__file__).parent
PLACES = [str(HERE.parents[2] / "$folder")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", cases(HERE, "$name", PLACES), ids=str)
def test_${name}_keeps_the_contract(case, check):
    check(case)


def test_${name}_accepts_what_is_signed_without_its_help():
    body = b'{"id": "evt_2", "type": "order.paid"}'
    signature = hmac.new(b"a secret of the tests", body, hashlib.sha256).hexdigest()
    delivery = Delivery("POST", "", {"x-$dashed-signature": f"sha256={signature}"}, body)

    provider = load("$name", PLACES)
    provider.verify(delivery, ["a secret of the tests"], datetime.now(UTC))

    assert [(event.id, event.type) for event in provider.events(delivery)] == [("evt_2", "order.paid")]
""")

_SECRET = "a secret of the tests"  # noqa: S105  it signs a sample and nothing else
_BODY = '{"id": "evt_1", "type": "order.created", "order": {"total": 1999, "currency": "eur"}}'


@dataclass(frozen=True)
class Made:
    """Files to write, by their path from the current directory, and remarks for the user.

    `is_verified`: whether nothing contradicts what was written; a secret that fits in no way does.
    """

    contents: Mapping[Path, bytes]
    remarks: Sequence[str] = ()
    is_verified: bool = True


def is_test(path: Path) -> bool:
    """Whether a file is a module of tests, and no delivery."""
    return path.name.startswith("test_")


def files(name: str, folder: Path) -> dict[Path, bytes]:
    """Return path and content of each file, relative to the current directory."""
    words = {"name": name, "dashed": name.replace("_", "-"), "Title": name.replace("_", " ").title()}
    tests = Path("tests", "providers", name)
    texts = {
        folder / f"{name}.py": _MODULE.substitute(words),
        tests / f"test_{name}.py": _TEST.substitute(words, folder=folder.as_posix()),
        tests / "order-created.json": _delivery(words["dashed"]),
    }
    return {path: text.encode() for path, text in texts.items()}


def _delivery(dashed: str) -> str:
    """One delivery as it would be captured: replace it by real ones of the sender."""
    signature = hmac.new(_SECRET.encode(), _BODY.encode(), hashlib.sha256).hexdigest()
    captured = {
        "source": "made up; put deliveries of the sender here, with a secret you have rolled since",
        "secret": _SECRET,
        "headers": {
            f"X-{dashed.title()}-Signature": f"sha256={signature}",
            "Content-Type": "application/json",
        },
        "body": _BODY,
        "expected_event_id": "evt_1",
        "expected_event_type": "order.created",
    }
    return json.dumps(captured, indent=1) + "\n"
