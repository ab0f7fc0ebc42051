"""Probes of the URL: who gets an answer, and that the answer is of no use to anybody else."""

import json

from hookonce.providers import Rejected
from hookonce.providers.kit.conformance.cases import Case, expect


def check_handshake(case: Case) -> None:
    """A probe gets its reply, a forged one none, an event none; no reply is a signature of chosen text."""
    handshake = case.provider.handshake
    if handshake is None:
        expect(case.reply is None, "a probe needs a handshake")
        return
    reply = case.probe(case.delivery, [case.secret])
    if case.reply is None:
        expect(reply is None, "what is not a probe was answered as one")
        return
    expect(reply is not None, "a probe was not answered")
    if reply is None:
        return
    body = json.loads(reply.body) if "json" in case.reply else reply.body.decode()
    expect(reply.status == case.reply["status"], f"a probe was answered with {reply.status}")
    expected = case.reply.get("json", case.reply.get("body", ""))
    expect(body == expected, "a probe was answered with another body")
    expect(reply.fetch == case.reply.get("fetch"), "the reply to a probe fetches another URL")
    sent = {name.lower(): value for name, value in reply.headers.items()}
    wanted = {name.lower(): value for name, value in case.reply.get("headers", {}).items()}
    expect(wanted.items() <= sent.items(), "a probe was answered with other headers")
    if case.verdict(case.delivery) is None:
        forged = _answer(case, case.wrong)
        expect(forged is None, "a forged probe was answered, though this sender signs them")
    _expect_no_oracle(case, reply.body)


def _answer(case: Case, secret: str) -> object:
    try:
        return case.probe(case.delivery, [secret])
    except Rejected:
        return None


def _expect_no_oracle(case: Case, reply: bytes) -> None:
    """The reply holds no signature of the body or of a text in it, all of which an attacker may choose."""
    texts = [case.delivery.body, *(text.encode() for text in case.delivery.body.decode("latin-1").split('"'))]
    for text in texts:
        for value in case.signed(text).headers.values():
            marks = [value, *value.split("="), *value.split(",")]
            leaked = any(len(mark) > 24 and mark.encode() in reply for mark in marks)  # noqa: PLR2004
            expect(not leaked, "the reply to a probe is a signature: whoever probes can sign what they like")
