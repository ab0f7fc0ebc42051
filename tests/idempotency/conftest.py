import os

import psycopg
import pytest

from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.idempotency.postgresql import PostgresStore
from tests.support.idempotency.places import OnDynamo, OnPostgres, OnRedis, dynamo_server


@pytest.fixture(scope="session")
def dynamo_endpoint():
    if not os.environ.get("CI"):
        pytest.importorskip("moto")
        pytest.importorskip("boto3")
    with dynamo_server() as endpoint:
        yield endpoint


@pytest.fixture(params=["postgresql", "redis", "dynamodb"])
def place(request):
    """Each store in turn, on its real server, with nothing in it."""
    made = {
        "postgresql": lambda: OnPostgres(request.getfixturevalue("database_url")),
        "redis": lambda: OnRedis(request.getfixturevalue("redis_url")),
        "dynamodb": lambda: OnDynamo(request.getfixturevalue("dynamo_endpoint")),
    }[request.param]()
    yield made
    made.close()


@pytest.fixture
def connection(database_url):
    with psycopg.connect(libpq_url(database_url), autocommit=True) as opened:
        yield opened


@pytest.fixture
def store(database_url):
    made = PostgresStore.at(database_url)
    yield made
    made.close()
