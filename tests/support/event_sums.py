"""Compares the sums of events that the ledger keeps with a count of all of them."""

from hookonce.receiver.ledger.stats import totals

_EVERY = "SELECT source, status, count(*) FROM hookonce.event_states GROUP BY source, status"


def differences(connection):
    """Return, at one moment, what is not equal: by source and status the kept sum and the count, in this order."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        kept = {
            (source, status): number
            for source, status, number in [
                (each.source, each.status, each.count) for each in totals.event_sums(connection)
            ]
        }
        counted = {(source, status): number for source, status, number in connection.execute(_EVERY)}
    found = {label: (kept.get(label, 0), counted.get(label, 0)) for label in kept.keys() | counted.keys()}
    return {label: numbers for label, numbers in sorted(found.items()) if numbers[0] != numbers[1]}
