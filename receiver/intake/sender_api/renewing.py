"""Makes subscriptions and renews them long before they end; none is touched but those that were made here.

A renewal that finds its subscription gone makes another at once. A sender whose subscriptions can't be renewed gets
another one, and the old one is ended after it.
"""

import uuid
from datetime import datetime, timedelta
from typing import Final

import psycopg

from hookonce.providers.kit.calls import GONE, NOT_FOUND, CallFailed, Renewal, Subscription, Wanted
from hookonce.receiver.intake.sender_api.client import Client
from hookonce.receiver.ledger.maintenance import sender_api as ledger
from hookonce.receiver.ledger.maintenance.sender_api import LeasedSubscription
from hookonce.receiver.source import Renewed

LOOK: Final = timedelta(hours=1)
"""How often a subscription that can be renewed is: so it is found out as soon when one was deleted."""
RETRY: Final = timedelta(minutes=5)
LEASE: Final = timedelta(minutes=2)


def renew(connection: psycopg.Connection, client: Client, renewal: Renewal, each: Renewed) -> str | None:
    """Renew a subscription if it is due; return what there is to say of it. Raises nothing: what fails is noted."""
    known = ledger.lease_subscription(connection, client.source.name, each.resource, client.now, LEASE)
    if known is None:
        return None
    try:
        made, told = _renewed(connection, client, renewal, each, known)
    except CallFailed as error:
        told = f"subscription to {each.resource} was not renewed: {error}"
        ledger.update_subscription(
            connection,
            known,
            due_at=client.now + max(error.after or RETRY, RETRY),
            problem=str(error),
            failed_since=known.failed_since or client.now,
        )
        return told
    half = (made.expires_at - client.now) / 2
    ledger.update_subscription(
        connection,
        known,
        id=made.id,
        handle=made.handle,
        expires_at=made.expires_at,
        due_at=client.now + max(RETRY, min(LOOK, half) if renewal.renew else half),
        made=known.made + (made.id != known.id),
        remade_at=client.now if told else known.remade_at,
        problem=None,
        failed_since=None,
    )
    return told


def _renewed(
    connection: psycopg.Connection, client: Client, renewal: Renewal, each: Renewed, known: LeasedSubscription
) -> tuple[Subscription, str | None]:
    token = client.token(connection, renewal)
    secret = next(iter(client.source.secrets), "")
    if not secret:
        raise CallFailed(
            f"source '{client.source.name}' has no secret here; set {client.source.secret_places}"
        )
    wanted = Wanted(each.resource, each.changes, client.source.url_of(), secret, each.lasts or renewal.lasts)
    old = Subscription(known.id, known.expires_at or client.now, known.handle or "") if known.id else None
    if old and renewal.renew:
        answer = client.send(connection, renewal, renewal.renew(wanted, old, token, client.now))
        if answer.status not in {NOT_FOUND, GONE}:
            return _living(renewal.read(answer), client.now), None
    request = renewal.make(wanted, str(uuid.uuid4()), token, client.now)
    made = _living(renewal.read(client.send(connection, renewal, request)), client.now)
    if old and renewal.end:
        # A channel that has ended by itself is gone: there is nothing to be done about any answer.
        client.send(connection, renewal, renewal.end(wanted, old, token))
    if old and renewal.renew:
        return made, f"subscription to {each.resource} was gone, and was made again"
    return made, None


def _living(made: Subscription, now: datetime) -> Subscription:
    if made.expires_at <= now:
        raise CallFailed("the sender's answer says that the subscription is over")
    return made
