"""Vendors' own verifiers from npm take every sample that `hookonce trigger` sends, and refuse what we refuse.

`make vendors` installs them, a gigabyte, and runs this. Those of PyPI are live in tests/providers/, in
test_vendor_verifiers.py and test_samples_before_verifiers.py.
"""

import json
import re
import subprocess
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookonce.providers import KeyNeeded, Rejected
from hookonce.receiver.samples import documents, files
from tests.support.captured import captured_of

SCRIPT = Path(__file__).with_name("npm.mjs").read_text()
PACKAGES = Path(__file__).parents[2] / ".vendors"
URL = "https://in.example/hooks/s"
TABLES = re.findall(r"const OF_\w+ = \{(.*?)\}", SCRIPT, re.DOTALL)
SENDERS = re.findall(r"^  (\w+): (?:async )?\((?:\{secret|sent)", SCRIPT, re.MULTILINE) + re.findall(
    r'(\w+): "', "".join(TABLES)
)
ACCOUNTS = {"standard_webhooks": "svix-headers", "fal_ai": "result"}
"""The captured deliveries whose secret the verifier can be given, where the first one's can't."""
LEFT_TO_THE_USER = {"fal_ai": "for whom it is", "vonage": "the hash of the body"}
"""What a verifier does not look at, and we do."""


@pytest.fixture(scope="module")
def verdict():
    """Ask the vendor's verifier: True, or why not."""
    if not (PACKAGES / "node_modules").is_dir():
        pytest.skip("vendors' packages are not installed: make vendors")
    command = ["node", "--input-type=module", "--eval", SCRIPT]
    process = subprocess.Popen(
        command, cwd=PACKAGES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(case, sent, secret):
        keys = {url: document.decode() for url, document in case.fetched.get("keys", {}).items()}
        body = b64encode(sent.body).decode()
        said = {"sender": case.provider.name, "secret": secret, "url": sent.url, "body": body, "keys": keys}
        process.stdin.write(json.dumps({**said, "headers": dict(sent.headers)}) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        return answer["taken"] or answer.get("why", "refused")

    with process:
        yield ask
        process.stdin.close()


def account(name, kind):
    """The first captured delivery whose secret signs such a sample, and the sample as it is sent now."""
    now = datetime.now(UTC)
    for case in captured_of(name):
        if not (case.is_genuine and case.signing and case.name.endswith(ACCOUNTS.get(name, ""))):
            continue
        try:
            sent = documents.fresh(case.provider, kind, now).delivery(case.signing, now, URL)
            case.provider.verify(sent, [case.secret], now, **case.fetched)
        except (Rejected, ValueError):
            continue
        return case, sent, now
    return pytest.fail(f"no captured delivery of {name} signs a {kind}")


def ours(case, sent, secret, now):
    try:
        case.provider.verify(sent, [secret], now, **case.fetched)
    except (Rejected, KeyNeeded):
        return False
    return True


def changed(sent):
    """The same with another letter or digit in the middle of its body."""
    places = [place.start() for place in re.finditer(rb"[0-9A-Za-z]", sent.body)]
    at = places[len(places) // 2]
    other = b"1" if sent.body[at : at + 1] != b"1" else b"2"
    return replace(sent, body=sent.body[:at] + other + sent.body[at + 1 :])


@pytest.mark.parametrize("name", SENDERS)
def test_vendors_verifier_takes_every_sample_and_refuses_as_we_do(verdict, name):
    kinds = files.types(name) or [None]
    case, sent, _ = account(name, kinds[0])
    verdict(case, sent, case.secret)  # loads the SDK, which may take longer than Paddle's five seconds

    for kind in kinds:
        case, sent, now = account(name, kind)
        other = changed(sent)

        assert verdict(case, sent, case.secret) is True, kind
        taken = verdict(case, other, case.secret) is True
        assert taken == ours(case, other, case.secret, now) or name in LEFT_TO_THE_USER, kind


@pytest.mark.parametrize("name", sorted({*SENDERS} - {*LEFT_TO_THE_USER}))
def test_vendors_verifier_refuses_what_another_secret_signed(verdict, name):
    kind = next(iter(files.types(name)), None)
    case, _, now = account(name, kind)
    document = documents.fresh(case.provider, kind, now)
    forged = document.delivery(case.wrong, now, URL)

    assert not ours(case, forged, case.secret, now)
    assert verdict(case, forged, case.secret) is not True
