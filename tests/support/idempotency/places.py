"""Each store on its real server, with what a test needs to play time and loss."""

import contextlib
import os
import re
import subprocess
import sys
import uuid
from datetime import timedelta

import psycopg
import pytest
import requests

from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.idempotency.postgresql import PostgresStore
from hookonce.receiver.idempotency.redis_hash import RedisStore
from hookonce.receiver.redis import client

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-central-1",
}
SERVER = """
import logging
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
logging.getLogger("werkzeug").setLevel(logging.ERROR)
# One request after the other: moto looks at a condition and writes in two steps.
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
print(server.port, flush=True)
server.serve_forever()
"""


class OnPostgres:
    """Records in a database of the test's own."""

    def __init__(self, url):
        self.spec = f"postgresql {url}"
        self.url = url
        self._stores = []

    def open(self):
        """Return a store with connections of its own, as another process would have."""
        self._stores.append(PostgresStore.at(self.url, size=8))
        return self._stores[-1]

    def age(self, key, span):
        """Let time pass for a record."""
        self._run(
            "UPDATE hookonce.idempotency SET lease_until = lease_until - %s, expires_at = expires_at - %s "
            "WHERE scope = %s AND key = %s",
            [span, span, key.scope, key.key],
        )

    def lose(self, key):
        """Have the record gone."""
        self._run("DELETE FROM hookonce.idempotency WHERE scope = %s AND key = %s", [key.scope, key.key])

    def nowhere(self):
        """Return a store whose server does not answer."""
        return PostgresStore.at("postgresql://127.0.0.1:1/nowhere", size=1)

    def close(self):
        for store in self._stores:
            store.close()

    def _run(self, statement, values):
        with psycopg.connect(libpq_url(self.url), autocommit=True) as connection:
            connection.execute(statement, values)


class OnRedis:
    """Records in a logical database of the test's own."""

    def __init__(self, url):
        self.spec = f"redis {url}"
        self.url = url
        self._clients = []

    def open(self):
        self._clients.append(client.connect(self.url))
        return RedisStore(self._clients[-1])

    def age(self, key, span):
        ms = int(span / timedelta(milliseconds=1))
        with client.connect(self.url) as redis:
            for field in ("lease_until", "expires_at"):
                redis.hincrby(f"hookonce:operation:{key.digest}", field, -ms)

    def lose(self, key):
        with client.connect(self.url) as redis:
            redis.delete(f"hookonce:operation:{key.digest}")

    def nowhere(self):
        return RedisStore(client.connect("redis://127.0.0.1:1/0"))

    def close(self):
        for each in self._clients:
            each.close()


class OnDynamo:
    """Records in a table of the test's own."""

    def __init__(self, endpoint, table=""):
        self._endpoint = endpoint
        self.table = table or f"operations-{uuid.uuid4().hex[:12]}"
        self.spec = f"dynamodb {endpoint} {self.table}"
        self._stores = []
        if not table:
            self.open().create_table()

    def open(self):
        self._stores.append(open_dynamo(self._endpoint, self.table))
        return self._stores[-1]

    def item(self, key):
        """Return what the service holds."""
        with contextlib.closing(open_dynamo(self._endpoint, self.table).client) as dynamo:
            found = dynamo.get_item(TableName=self.table, Key={"key": {"S": key.digest}})["Item"]
            ttl = dynamo.describe_time_to_live(TableName=self.table)["TimeToLiveDescription"]["AttributeName"]
            return found | {"ttl": found[ttl]}

    def age(self, key, span):
        update = "SET lease_until = lease_until - :span, expires_at = expires_at - :span"
        with contextlib.closing(open_dynamo(self._endpoint, self.table).client) as dynamo:
            dynamo.update_item(
                TableName=self.table,
                Key={"key": {"S": key.digest}},
                UpdateExpression=update,
                ExpressionAttributeValues={":span": {"N": str(span.total_seconds())}},
            )

    def lose(self, key):
        with contextlib.closing(open_dynamo(self._endpoint, self.table).client) as dynamo:
            dynamo.delete_item(TableName=self.table, Key={"key": {"S": key.digest}})

    def without_table(self):
        return open_dynamo(self._endpoint, "no-such-table")

    def nowhere(self):
        return open_dynamo("http://127.0.0.1:1", self.table)

    def close(self):
        for store in self._stores:
            store.client.close()


def open_dynamo(endpoint, table):
    dynamodb = pytest.importorskip("hookonce.receiver.idempotency.dynamodb")
    names = ("aws_access_key_id", "aws_secret_access_key", "region_name")
    return dynamodb.DynamoStore.at(
        table, endpoint_url=endpoint, **dict(zip(names, CREDENTIALS.values(), strict=True))
    )


@contextlib.contextmanager
def dynamo_server():
    """Run a DynamoDB of moto's in a process of its own; its address."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, env=os.environ | CREDENTIALS
    ) as server:
        try:
            port = server.stdout.readline().strip()
            assert re.fullmatch(r"\d+", port), "the server of moto did not start"
            endpoint = f"http://127.0.0.1:{port}"
            requests.get(f"{endpoint}/moto-api/data.json", timeout=60)  # the first answer takes long
            yield endpoint
        finally:
            server.kill()
