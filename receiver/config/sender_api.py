"""Questions of a source to its sender's API (the list of what it sent, subscriptions).

The key for them is never resolved with the settings: the one process that calls looks it up (`jobs.sender_keys`).
"""

import re
from collections.abc import Iterator
from datetime import timedelta

from hookonce.providers.kit.provider import Provider
from hookonce.receiver.config.secret_references import Reference
from hookonce.receiver.source import Source

_SHORTEST = timedelta(minutes=10)


def sender_api_mistakes(table: Source, provider: Provider) -> Iterator[str]:
    """Yield what is wrong with the questions of a source to its sender."""
    listing, renewal, is_listed = provider.listing, provider.renewal, table.reconcile or table.api
    if Reference.parse(table.api_key) is None:
        yield 'needs api_key where it asks its sender; write api_key = "env:NAME" or "file:/path"'
    if is_listed and listing is None:
        yield f"has reconcile or api, and {provider.name} is not asked for what it sent; remove them"
    if table.renew and renewal is None:
        yield f"has renew, and {provider.name} has no subscriptions that are renewed; remove it"
    if table.reconcile and table.reconcile < _SHORTEST:
        yield "reconcile is shorter than 10m; expected that or longer"
    if listing and is_listed and not re.fullmatch(listing.api, table.api):
        expected = f"expected {listing.api}" if listing.api else "remove it"
        yield f"api is not an address of {provider.name}'s list; {expected}"
    if listing and listing.redeliver and table.id and table.reconcile:
        yield "has reconcile and id, but its sender's list has its own ids only; remove one of them"
    if table.renew and not (table.url_reference or table.public_url).startswith("https://"):
        yield "has renew and no https URL for its sender; set public_url"
    resources = [each.resource for each in table.renew]
    if len(set(resources)) < len(resources):
        yield "renew names a resource twice"
    yield from (
        f"renew names {each!r}; expected {renewal.resource}"
        for each in resources
        if renewal and not re.fullmatch(renewal.resource, each)
    )
