import pytest

from tests.support.brokers import AWS, Nats, Rabbit, sqs_server
from tests.support.consuming import Consuming
from tests.support.inbox import inbox

__all__ = ["inbox"]


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory):
    server = Nats(tmp_path_factory.mktemp("nats")).start()
    yield server
    server.kill()


@pytest.fixture
def nats_broker(nats_server):
    nats_server.make_stream()
    return nats_server


@pytest.fixture(scope="session")
def rabbit_server(tmp_path_factory):
    server = Rabbit(tmp_path_factory.mktemp("rabbitmq")).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def sqs_endpoint():
    with sqs_server() as endpoint:
        yield endpoint


@pytest.fixture
def sqs(sqs_endpoint, monkeypatch):
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    return pytest.importorskip("boto3").client("sqs", endpoint_url=sqs_endpoint)


@pytest.fixture
def consuming(database_url, redis_url, tmp_path):
    def made(place, **options):
        return Consuming((database_url, redis_url), tmp_path, place, **options)

    return made
