"""Writes the tables of senders from the modules and the captured deliveries: `make docs`.

docs/providers.md has everything; the README says how many there are and what shows them right, between two marks.
"""

import json
from collections import Counter
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from hookonce.providers import Rejected, Reply
from hookonce.providers.kit.conformance.cases import Case, said
from hookonce.providers.kit.events.declare import many_events, split_events
from hookonce.providers.kit.events.identity import BODY, RECEIPT, SIGNED_PERIOD, SIGNED_TIME
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load, names
from hookonce.providers.kit.schemes.jwt import Jwt
from hookonce.providers.kit.schemes.shared_token import Token
from hookonce.providers.kit.sender import NEVER
from hookonce.receiver.cli.new.project import NewSource
from hookonce.receiver.samples.evidence import LABELS
from tests.support.captured import DELIVERIES, captured_of
from tests.support.declared import declared

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "providers.md"
README = ROOT / "README.md"
LEFT_OUT = ROOT / "docs" / "providers-left-out"
MARKS = ("<!-- providers -->\n", "<!-- /providers -->\n")
LABELS_FILE = ROOT / "receiver" / "samples" / "evidence.json"
EVIDENCE = tuple(LABELS)
NONE = "none"
PARTNER = {"id": "$.id", "type": "$.type"}
OPTIONS = {
    "adobe_sign": {"client_id": "CBJCHBCAABAA"},
    "hmac": {"header": "x-signature", **PARTNER},
    "jwt": {"in": "header:x-jwt", "algorithms": ["RS256"], "body_hash": "body_sha256", **PARTNER},
    "signed": {"algorithm": "ed25519", "header": "x-signature", **PARTNER},
    "token": {"in": "bearer", **PARTNER},
}
KNOWN_AS = {
    "aws_sns": "amazon_sns",
    "bridge_xyz": "bridge",
    "chargebee_billing": "chargebee",
    "claude": "anthropic_managed_agents",
    "coinbase": "coinbase_commerce",
    "commercelayer": "commerce_layer",
    "customerio": "customer_io",
    "facebook": "meta",
    "frontapp": "front",
    "gemini": "google_gemini",
    "paddle": "paddle_billing",
    "sendgrid": "twilio_sendgrid_events",
    "sendgrid_inbound": "twilio_sendgrid_inbound",
    "shipbob": "standard_webhooks",
    "twitter": "x_twitter",
    "wechat": "wechat_pay",
    "whatsapp": "meta",
}
"""Names that others, Hookdeck's list of source types among them, have for senders of another name here."""
COLUMNS = (
    "sender",
    "what is verified",
    "told apart by",
    "batch",
    "probe",
    "against replays",
    "disables endpoints after",
    "evidence",
)
TO_PASTE = ("sender", "variable", "URL to paste", "at the sender")
GENERIC = frozenset({"hmac", "jwt", "signed", "token"})
"""Senders of any name, which take what an option names."""

HEAD = """\
# The senders

Written by `make docs` from the modules in `providers/` and the deliveries in
`tests/providers/`; a test keeps it true.

`hookonce init SENDER` writes the source and its variable. Put the secret that the sender shows you into the variable,
and give the sender the URL; it ends with the source's name, which may be another.
[What is verified](#what-is-verified), and how each sender was tested, is below.

"""

VERIFIED = """
## What is verified

- **What is verified** is the first line of the module; the module says the rest.
- **Told apart by**: what makes two events of a sender two; where it says *or …* other events, or older ones, have
  something else, which the module names. *Unsigned* ids are outside of what the sender signs: the same body under a
  new id is marked as a repeat, and runs, or, where it says *held*, waits for a person: [below](#repeats) is why.
- **Against replays**: how old a signed time may be, or that a signed token says itself until when it is good (`exp`).
  *Of some deliveries nothing*: what the sender signs without a time, or brings a mere token with, is taken for ever.
  Where the column is empty no time is signed, and only the id tells a replay.
- **Disables endpoints after**: what makes the sender do so, as far as that is known; where it says nothing it is not.
  A source's limit refuses nobody but those of which it says *never*, and puts off what comes from all others.
- **Evidence** is the best among the sender's test deliveries that are accepted; a probe counts where it is signed, or
  where its answer can only be made with the secret.
  *Captured*: sent by the vendor. *Vendor docs*: published by the vendor, with its signature. *Vendor SDK*: signed or
  verified by the vendor's own library. *Third party*: signed or verified by somebody else's code. *Self-signed*: signed
  with OpenSSL or a few lines that are not the module's, from what the vendor documents; so it can't show that the
  documentation was misread. What a module signed itself counts nowhere. `hookonce init` and `hookonce providers list`
  say the label too; [below](#what-would-raise-the-evidence) is what would raise it.

"""

SEARCHED = '<div class="searched" data-searched="Search senders"></div>\n\n'
"""Where docs/assets/search-table.js puts a field that searches the table after it."""


def provider_of(name: str) -> Provider:
    """Load a sender, the generic one with options enough to be configured."""
    return load(name, options=OPTIONS.get(name))


@cache
def facts(name: str) -> tuple[tuple[Case, dict[str, Any]], ...]:
    """Read a sender's test deliveries with what is written beside them, those to be refused left out."""
    read = [(case, said(_file(case))) for case in captured_of(name) if not case.is_twin]
    return tuple((case, facts) for case, facts in read if case.reason is None)


def _file(case: Case) -> Path:
    captured = (DELIVERIES / case.name).with_suffix(".http")
    return captured if captured.exists() else captured.with_suffix(".json")


def proves(case: Case) -> bool:
    """Whether something in a delivery, or in the answer to a probe, could only be made with the secret.

    Where nothing is signed at all, what the sender documents is the delivery itself.
    """
    if case.reply is None or (
        case.verdict(case.delivery) is None and case.verdict(case.delivery, [case.wrong])
    ):
        return case.reply is None or not case.provider.unauthenticated
    right, other = _answer(case, case.secret), _answer(case, case.wrong)
    return right is not None and other is not None and right.status == other.status and right != other


def _answer(case: Case, secret: str) -> Reply | None:
    try:
        return case.probe(case.delivery, [secret])
    except Rejected:
        return None


def evidence(name: str) -> str:
    """Say the best evidence among a sender's signed test deliveries, `none` if there is none."""
    given = {said.get("evidence", NONE) for case, said in facts(name) if proves(case)}
    return min(given, key=(*EVIDENCE, NONE).index, default=NONE)


def against_replays(name: str) -> str:
    """Say what keeps an old delivery out: nothing but its id, how old it may be, or what its token says."""
    sender = provider_of(name)
    scheme = sender.scheme
    if sender.tolerance is None:
        return ""
    ends = isinstance(scheme, Jwt) and "exp" in scheme.needs and scheme.max_age is None
    held = "the token's `exp`" if ends else span(sender.tolerance)
    untimed = any(said.get("timed") is False and "options" not in said for _, said in facts(name))
    return f"{held}; of some deliveries nothing" if untimed else held


def event_id(sender: Provider) -> str:
    """Say by what two events are told apart: the first way that there is, and whether there are others."""
    groups = sender.identity.tells if sender.identity else ()
    first = " + ".join(f"the {place}" if place in WORDS else place for place in groups[0]) if groups else ""
    return f"{first} or …" if len(groups) > 1 else first


WORDS = (BODY, RECEIPT, SIGNED_TIME, SIGNED_PERIOD)
"""Places that have no path."""


def over_a_limit(name: str) -> str:
    """Say what makes the sender disable an endpoint; empty where that is not known."""
    sender = provider_of(name)
    return "never" if sender.disables_after == NEVER else sender.disables_after or ""


def span(time: timedelta | None) -> str:
    """Write a time in the largest unit that it is a few of."""
    if time is None:
        return ""
    minutes = time.total_seconds() / 60
    for size, unit in ((24 * 60, "days"), (60, "hours")):
        if minutes >= 2 * size:
            return f"{minutes / size:g} {unit}"
    return f"{minutes:g} min"


def row(name: str) -> tuple[str, ...]:
    """Say everything the table has on a sender."""
    sender = provider_of(name)
    events = sender.events
    several = any(isinstance(said.get("expected_event_id"), list) for _, said in facts(name))
    is_batch = several or isinstance(events, many_events | split_events)
    return (
        f"[`{name}`](../providers/{name}.py)",
        sender.summary,
        event_id(sender)
        + ("" if sender.id_is_signed else " (unsigned, held)" if sender.holds_repeats else " (unsigned)"),
        "yes" if is_batch else "",
        "yes" if sender.handshake else "",
        against_replays(name),
        over_a_limit(name),
        evidence(name),
    )


def to_paste(name: str) -> tuple[str, ...]:
    """Say what connects a sender: the variable of its secret, the URL, and where to paste it."""
    sender = provider_of(name)
    source = "NAME" if name in GENERIC else name
    key = ": the sender's public key" if sender.key_algorithm else ""
    needed = key if sender.needs_secret else ", or empty: its keys are fetched"
    query = sender.scheme.query if isinstance(sender.scheme, Token) else ""
    end = "/SECRET" if getattr(sender.scheme, "path", False) else f"?{query}=SECRET" if query else ""
    return (
        f"`{name}`",
        f"`{NewSource(source, sender).variable}`{needed}",
        f"`https://your.host/hooks/{source}{end}`",
        f"[set up]({sender.setup_url})" if sender.setup_url else "",
    )


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Write a Markdown table."""
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def left_out() -> str:
    """List the senders that were looked at and left out, each with its reason."""
    reasons = [(path.stem, " ".join(path.read_text().split())) for path in sorted(LEFT_OUT.glob("*.txt"))]
    if not reasons:
        return ""
    why = (
        "A wrong module is worse than none: of these, something that decides authenticity is not known, or no option\n"
        "says it. With the sender's page and a delivery at hand, [write one](adding-a-provider.md)."
    )
    return f"\n## Left out\n\n{why}\n\n" + table(
        ("sender", "why"), [(f"`{name}`", reason) for name, reason in reasons]
    )


def without_a_module() -> str:
    """List the senders that a generic provider takes, each with what a source says."""
    rows = [
        (
            f"[{each.name}]({each.said['page']})",
            each.said["signs"],
            each.said["from"],
            "<br>".join(f"`{line}`" for line in each.lines),
        )
        for each in declared()
    ]
    why = (
        "A source says all there is to say of these. Each line was tried with a delivery that a key of the kit's own\n"
        "signed: it signs, is read, and refuses what was changed. What the sender really sends was not seen: let it\n"
        "send a test before you rely on it, and look at it with `hookonce capture`."
    )
    return f"\n## Declared\n\n{why}\n\n" + table(("sender", "signs", "known from", "in its source"), rows)


def repeats() -> str:
    """List the senders whose signed bodies come with ids that are not, and what becomes of a repeat of each."""
    told = [(name, provider_of(name)) for name in names()]
    rows = [
        (f"`{name}`", "waits" if each.holds_repeats else "runs", each.holds_repeats or each.runs_repeats)
        for name, each in told
        if each.holds_repeats or each.runs_repeats
    ]
    why = (
        "What these sign leaves the id out, so whoever has seen a delivery can send it again under another.\n"
        "Such a repeat is marked, and runs or waits for a person, as `repeats` of the source says, or else:"
    )
    return f"\n## Repeats\n\n{why}\n\n" + table(("sender", "a repeat", "because"), rows)


def asked() -> str:
    """List the senders that are asked for what never came, and those whose subscriptions are renewed."""
    rows = []
    for name in names():
        sender = provider_of(name)
        if sender.listing:
            how = "has events redelivered" if sender.listing.redeliver else "lists the events themselves"
            rows.append((f"`{name}`", f"asked: {how}, for {span(sender.listing.keeps)}"))
        if sender.renewal:
            rows.append((f"`{name}`", "renewed; not asked: it lists nothing of what it sent"))
    why = (
        "An inbox can [ask these](how-to/reconcile.md) for what never came, or [renew](how-to/renew.md) what ends.\n"
        "All other senders are not asked: of events of theirs that never came nothing is known."
    )
    return f"\n## Asked for what never came\n\n{why}\n\n" + table(("sender", ""), rows)


def labels() -> str:
    """Write what `hookonce init` says of each sender's evidence."""
    said = {name: evidence(name) for name in names() if evidence(name) != NONE}
    return json.dumps(said, indent=1) + "\n"


def raised_by(name: str) -> str:
    """Say what would raise the evidence of a sender that nobody but us has checked."""
    sender = provider_of(name)
    if sender.body_is_unsigned:
        return "a delivery as it came: nothing is signed, so it shows where the secret is, and what a body looks like"
    if sender.key_algorithm:
        return "a delivery as it came, with the public key that verifies it: both may be shown to anybody"
    return (
        "a delivery as it came with its secret, rolled since; or a library of others that takes what we sign"
    )


def to_be_raised() -> str:
    """List the senders that nobody but us has checked, each with what would raise it."""
    rows = [
        (f"`{name}`", raised_by(name))
        for name in names()
        if evidence(name) == EVIDENCE[-1] and name not in GENERIC
    ]
    why = (
        "Nobody but us has checked these: no code that verifies them, of the sender's or of others, was at hand.\n"
        "If you receive from one, `hookonce capture` writes a delivery as it comes, and `hookonce new provider` in\n"
        "a clone of the repository puts it beside the others."
    )
    return f"\n## What would raise the evidence\n\n{why}\n\n" + table(("sender", "raised by"), rows)


def known_as() -> str:
    """Say which senders are here under another name."""
    said = ", ".join(f"`{other}` is `{name}`" for other, name in sorted(KNOWN_AS.items()))
    return f"\n## By another name\n\n{said}.\n"


def page() -> str:
    """Write docs/providers.md."""
    known = names()
    first = table(TO_PASTE, [to_paste(name) for name in known])
    rows = table(COLUMNS, [row(name) for name in known])
    parts = (to_be_raised(), repeats(), asked(), without_a_module(), known_as(), left_out())
    return f"{HEAD}{len(known)} senders.\n\n{SEARCHED}{first}{VERIFIED}{rows}{''.join(parts)}"


def readme_part() -> str:
    """Write what stands between the marks of the README."""
    known = names()
    count = Counter(evidence(name) for name in known)
    vendor = sum(count[kind] for kind in EVIDENCE[:3])
    return (
        f"{len(known)} senders. Tests hold each module against deliveries that it did not sign itself: "
        f"for {vendor} senders\n"
        "published by the vendor, or signed or verified by the vendor's own SDK; "
        f"for {count['third party']} signed or\nverified by somebody else's code; "
        f"for {count['self-signed']} signed with OpenSSL or a few independent lines,\n"
        "from the vendor's documentation. [The table](docs/providers.md) has them all, to be searched.\n"
    )


def with_part(readme: str) -> str:
    """Give the README with its part renewed."""
    before, rest = readme.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    return f"{before}{MARKS[0]}{readme_part()}{MARKS[1]}{after}"


if __name__ == "__main__":
    LABELS_FILE.write_text(labels())
    PAGE.write_text(page())
    README.write_text(with_part(README.read_text()))
