"""The store that an operation's records are in: the ledger's unless another is given, its answers sealed."""

import functools

from hookonce.receiver.config import encryption_keys, servers
from hookonce.receiver.endpoints.frameworks.detection import cursor_of
from hookonce.receiver.idempotency import operation as machine
from hookonce.receiver.idempotency.postgresql import PostgresStore
from hookonce.receiver.idempotency.records import Claim, Result, State, Store
from hookonce.receiver.idempotency.sealed import SealedStore


@functools.cache
def in_ledger() -> SealedStore:
    """Return the store beside the ledger that the environment names. Raises: `ConfigError`."""
    return SealedStore(PostgresStore.at(servers.ledger_url()), encryption_keys.configured_keyring())


def sealed(store: Store) -> SealedStore:
    """Return a store with its answers sealed by the configured keys, unless it has keys of its own."""
    return (
        store if isinstance(store, SealedStore) else SealedStore(store, encryption_keys.configured_keyring())
    )


def transactional(store: Store) -> PostgresStore | SealedStore:
    """Return a store that can store a result in the transaction of the work. Raises: TypeError."""
    innermost = store.store if isinstance(store, SealedStore) else store
    if not isinstance(store, PostgresStore | SealedStore) or not isinstance(innermost, PostgresStore):
        raise TypeError(
            "a result can be stored in the transaction of the work only where PostgreSQL keeps the keys"
        )
    return store


def complete_within(store: Store, transaction: object, claim: Claim, state: State, result: Result) -> None:
    """End a claim in a transaction: a connection's or session's of psycopg, SQLAlchemy or Django.

    Raises: `LeaseLost`, which must roll it back; TypeError.
    """
    fitting = machine.fitting(store, result)
    transactional(store).within(cursor_of(transaction), claim, state, fitting)
