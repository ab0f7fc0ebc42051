"""What only PostgreSQL does: the result in the transaction of the work, whatever the driver."""

from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text

from hookonce.receiver.config.server_urls import libpq_url, with_schema
from hookonce.receiver.idempotency import operation
from hookonce.receiver.idempotency.postgresql import Pool, PostgresStore
from hookonce.receiver.idempotency.records import Key, LeaseLost, Result, State, StoreUnavailable
from hookonce.receiver.ledger.database import engines, migrate
from tests.support.idempotency.checks import AFTER_LEASE, AFTER_RETENTION, ANSWER, KEY, Shop, begin, serve
from tests.support.idempotency.places import OnPostgres


@pytest.fixture
def place(database_url):
    with psycopg.connect(libpq_url(database_url)) as connection:
        connection.execute("CREATE TABLE public.payments (id int)")
    made = OnPostgres(database_url)
    yield made
    made.close()


def payments(place):
    with psycopg.connect(libpq_url(place.url)) as connection:
        return connection.execute("SELECT count(*) FROM public.payments").fetchone()[0]


def test_result_is_committed_with_the_work_or_not_at_all(place):
    store = place.open()
    claim = begin(store)

    with psycopg.connect(libpq_url(place.url)) as connection:
        connection.execute("INSERT INTO public.payments VALUES (7)")
        store.within(connection.cursor(), claim, State.COMPLETED, ANSWER)
        assert store.find(KEY).state == State.IN_PROGRESS
        connection.rollback()
        assert store.find(KEY).state == State.IN_PROGRESS
        connection.execute("INSERT INTO public.payments VALUES (7)")
        store.within(connection.cursor(), claim, State.COMPLETED, ANSWER)

    assert serve(store, Shop()) == ANSWER
    assert payments(place) == 1


def test_work_of_a_claim_that_was_taken_over_rolls_back(place):
    store = place.open()
    late = begin(store)
    place.age(KEY, AFTER_LEASE)
    begin(store)

    def work():
        with psycopg.connect(libpq_url(place.url)) as connection:
            connection.execute("INSERT INTO public.payments VALUES (7)")
            store.within(connection.cursor(), late, State.COMPLETED, ANSWER)

    with pytest.raises(LeaseLost):
        work()

    assert payments(place) == 0


def test_result_is_stored_by_the_connection_of_an_engine(place):
    store, engine = place.open(), engines.engine(place.url)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO public.payments VALUES (7)"))
        store.within(engines.raw(connection).cursor(), begin(store), State.COMPLETED, ANSWER)
    engine.dispose()

    assert serve(store, Shop()) == ANSWER


def test_records_lie_in_the_schema_that_is_configured(empty_database):
    url = with_schema(empty_database, "inbox")
    migrate.upgrade(url)
    place = OnPostgres(url)
    store = place.open()
    claim = begin(store)

    with psycopg.connect(libpq_url(url)) as connection:
        store.within(connection.cursor(), claim, State.COMPLETED, ANSWER)

    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT state FROM inbox.idempotency").fetchall() == [("completed",)]
    assert serve(store, Shop()) == ANSWER
    place.close()


def test_what_expired_goes_when_something_comes(place):
    store = place.open()
    serve(store, Shop())
    place.age(KEY, AFTER_RETENTION)

    begin(store, Key(KEY.scope, "another"))

    assert store.find(KEY) is None


def end_all_connections(place):
    with psycopg.connect(libpq_url(place.url), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )


def test_connection_that_broke_is_not_lent_again(place):
    pool = Pool(place.url, 1)
    with pool() as lent:
        end_all_connections(place)
        with pytest.raises(psycopg.OperationalError):
            lent.execute("SELECT 1")

    with pool() as connection:
        assert connection is not lent
        assert connection.execute("SELECT 1").fetchone() == (1,)
    pool.close()


def test_connection_that_ended_while_it_was_free_is_not_lent(place):
    store = place.open()
    assert serve(store, Shop()) == ANSWER
    end_all_connections(place)

    assert store.find(KEY).state == State.COMPLETED


def test_pool_that_is_used_up_is_unavailable_and_not_endless(place, monkeypatch):
    pool = Pool(place.url, 1)
    store = PostgresStore(pool)
    monkeypatch.setattr(pool, "PATIENCE", timedelta(0))

    with pool(), pytest.raises(StoreUnavailable, match="LedgerUnavailable"):
        store.find(KEY)

    assert store.find(KEY) is None
    pool.close()


def test_error_names_no_password(place):
    store = PostgresStore.at("postgresql://me:hunter2@127.0.0.1:1/nowhere")

    with pytest.raises(StoreUnavailable) as failure:
        operation.begin(store, KEY, b"", begin(place.open()).terms)

    assert "hunter2" not in f"{failure.value}{failure.value.__cause__}"
    assert Result(200).is_kept
