"""What came to a production inbox: deliveries of ten senders, stored as the receiver does, and who vouches for them."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from psycopg import sql

from hookonce.providers.kit.reading.json_paths import parse
from hookonce.providers.kit.registry import load
from hookonce.receiver.encryption import OFF
from hookonce.receiver.intake.new_events import new_event
from hookonce.receiver.ledger.store import store
from hookonce.receiver.privacy.at_rest import protected
from hookonce.receiver.privacy.masking import kept_headers
from hookonce.receiver.samples import documents
from hookonce.receiver.source import Source
from tests.providers.test_vendor_verifiers import EC, VERIFIERS, WHSEC, Verifier, pem
from tests.support.vendor_sdks import oracle

CARD = "4242424242424242"
"""What the source `github` redacts."""
URL = "https://in.example/hooks"


def stripe(sent, secret):
    signature = oracle("stripe").WebhookSignature
    return signature.verify_header(
        sent.body.decode(), sent.headers["stripe-signature"], secret, tolerance=300
    )


def github(sent, secret):
    given = sent.headers["x-hub-signature-256"]
    oracle("gidgethub.sansio").validate_event(sent.body, signature=given, secret=secret)
    return True


def slack(sent, secret):
    verifier = oracle("slack_sdk.signature").SignatureVerifier(secret)
    return verifier.is_valid_request(sent.body, dict(sent.headers))


KNOWN = {each.name: each for each in VERIFIERS}
TEN = [
    Verifier("stripe", stripe, WHSEC),
    Verifier("github", github),
    Verifier("slack", slack),
    *(KNOWN[name] for name in ("svix", "workos", "modern_treasury", "lithic", "box", "increase")),
    replace(KNOWN["twilio_sendgrid_events"], secret=pem(EC)),
]


def sources():
    """The ten, each with the secret that is production's alone."""
    made = {each.name: Source(each.name, load(each.name), (each.secret,)) for each in TEN}
    return made | {"github": replace(made["github"], redact=(tuple(parse("$.card")),))}


def deliver(connection, count):
    """Store so many events, of the ten in turn; return each one's ledger id, source, and body as it is kept."""
    known, kept, now = sources(), [], datetime.now(UTC)
    names = list(known)
    for number in range(count):
        source = known[names[number % len(names)]]
        secret, provider = source.secrets[0], source.provider
        document = documents.fresh(provider, None, now)
        if source.redact:
            document.set(f'card="{CARD}"')
        sent = document.delivery(secret, now, f"{URL}/{source.name}")
        body = sent.body.replace(b",", b" ,", 1)
        said = {"event_id": document.event_id, "type": document.type, "headers": dict(sent.headers)}
        sent = provider.delivery(body, secret, now, url=sent.url, **said)
        headers = kept_headers({**document.headers, **sent.headers}, source)
        [event] = provider.events(sent)
        row = new_event(source, sent, event, json.dumps(headers), now)
        row = protected(row, source, headers, OFF)
        kept.append((row.key, source.name, row.body, row.event_id))
        store(connection, [row])
    ids = dict(connection.execute("SELECT event_id, id FROM hookonce.events").fetchall())
    return [(ids[event_id], name, body) for _, name, body, event_id in kept]


def passes(connection, hours):
    """Let so many hours go by: what is stored came earlier, and pulls began earlier."""
    for table, column in (("bodies", "received_at"), ("events", "received_at"), ("audit", "at")):
        change = sql.SQL("UPDATE hookonce.{table} SET {column} = {column} - make_interval(hours => %s)")
        names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
        connection.execute(change.format(**names), [hours])
