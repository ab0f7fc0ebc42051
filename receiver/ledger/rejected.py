"""Notes rejected deliveries, forged ones above all: some as samples, all by counts; and which secrets verified."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import psycopg
from pydantic import Field, PlainSerializer, WithJsonSchema

from hookonce.receiver.encryption import OFF, Keyring, rejected_context
from hookonce.receiver.ledger.decryption import opened
from hookonce.receiver.ledger.rows import Identifier, Ours
from hookonce.receiver.ledger.stats import activity
from hookonce.receiver.ledger.withheld import EMPTY, ContentRow

MAX_KEPT = 10_000
"""Rejected deliveries that stay, whatever is sent."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A refused delivery as it is kept: headers (JSON) without secrets, the first bytes of the body."""

    at: datetime
    source: str
    reason: str
    detail: str
    headers: str
    body_prefix: bytes


class Rejection(ContentRow):
    """A rejected delivery, as far as it is kept; credentials are masked."""

    id: Identifier
    rejected_at: datetime
    source: Ours = Field(description="empty where no source has the name")
    reason: Ours
    do: Ours | None = Field(description="advice for that reason")
    detail: str
    headers: Annotated[dict[str, str], EMPTY]
    body_prefix: Annotated[
        bytes,
        EMPTY,
        PlainSerializer(lambda body: body.decode(errors="replace"), return_type=str),
        WithJsonSchema({"type": "string"}),
    ] = Field(description="the first bytes as text; what is no UTF-8 is replaced")
    unreadable: Ours | None = Field(
        description="why they can't be decrypted here; `body_prefix` is then empty"
    )


_ADD_SAMPLE = """
INSERT INTO hookonce.rejected (rejected_at, source, reason, detail, headers, body_prefix, key_id)
VALUES (%s, %s, %s, %s, %s::json, %s, %s)
"""

_TRIM = "DELETE FROM hookonce.rejected WHERE id <= (SELECT max(id) FROM hookonce.rejected) - %s"

_COUNT = """
INSERT INTO hookonce.rejections (source, reason, count)
SELECT * FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS t (source, reason, count) ORDER BY 1, 2
ON CONFLICT (source, reason) DO UPDATE SET count = rejections.count + excluded.count
"""


_USED = """
INSERT INTO hookonce.secret_use (source, slot, count, last_at)
SELECT source, slot, n, now() FROM unnest(%s::text[], %s::int[], %s::bigint[]) AS t (source, slot, n) ORDER BY 1, 2
ON CONFLICT (source, slot) DO UPDATE SET count = secret_use.count + excluded.count, last_at = excluded.last_at
"""


def add_rejections(
    connection: psycopg.Connection,
    samples: Sequence[Sample],
    counts: Mapping[tuple[str, str], int],
    keyring: Keyring = OFF,
) -> None:
    """Keep samples, their bodies sealed, trim the log to `MAX_KEPT`, and add to the counts by (source, reason)."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(_ADD_SAMPLE, [_sealed(sample, keyring) for sample in samples])
        cursor.execute(_TRIM, [MAX_KEPT])
        labels = list(counts)
        cursor.execute(_COUNT, [[k[0] for k in labels], [k[1] for k in labels], [counts[k] for k in labels]])
        activity.add(
            connection, {(source, f"rejected.{reason}"): counts[source, reason] for source, reason in labels}
        )


def add_secret_uses(connection: psycopg.Connection, counts: Mapping[tuple[str, int], int]) -> None:
    """Add to the counts of deliveries by source and secret slot (from 1), last used now."""
    slots = list(counts)
    connection.execute(_USED, [[k[0] for k in slots], [k[1] for k in slots], [counts[k] for k in slots]])


def _sealed(sample: Sample, keyring: Keyring) -> tuple[object, ...]:
    body, key = sample.body_prefix, None
    if keyring.is_on:
        body, key = keyring.encrypt(body, rejected_context(sample.source, sample.reason, sample.at))
    return sample.at, sample.source, sample.reason, sample.detail, sample.headers, body, key


def opened_rejection(keyring: Keyring, row: dict[str, Any]) -> Rejection:
    """Open a row of `rejected`; where that can't be done its beginning is empty, and `unreadable` says why."""
    bond = rejected_context(row["source"], row["reason"], row["rejected_at"])
    body, unreadable = opened(keyring, row.pop("body_prefix"), row.pop("key_id"), bond)
    return Rejection(**row, do=None, body_prefix=body, unreadable=unreadable)
