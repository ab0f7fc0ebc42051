"""A table is made once, however often it is asked for; one that is not ours is named as such."""

import http.client
import json
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from hookonce.receiver.idempotency.records import StoreUnavailable
from tests.support.idempotency.places import open_dynamo

TEXT_KEY = {"AttributeName": "key", "AttributeType": "S"}
HASH = {"AttributeName": "key", "KeyType": "HASH"}


@pytest.fixture
def table():
    return f"operations-{uuid4().hex[:12]}"


@contextmanager
def losing_answers(endpoint, lost, instead=None, first=None):
    """Stand before a service, pass on what is asked, and lose the first answer to each of some operations.

    `first`, `instead`: what the first, or the later requests of an operation are answered, as (status, document).
    """
    seen, there = [], urlsplit(endpoint)

    class Between(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            seen.append(operation)
            if operation in (instead or {}) and seen.count(operation) > 1:
                return self.reply(instead[operation][0], json.dumps(instead[operation][1]).encode())
            if operation in (first or {}) and seen.count(operation) == 1:
                return self.reply(first[operation][0], json.dumps(first[operation][1]).encode())
            with closing(http.client.HTTPConnection(there.hostname, there.port, timeout=20)) as onward:
                onward.request("POST", self.path, body, {**self.headers, "Host": there.netloc})
                answer = onward.getresponse()
                content = answer.read()
            if operation in lost and seen.count(operation) == 1:
                self.close_connection = True
                return None
            return self.reply(answer.status, content)

        def reply(self, status, content):
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def opened(endpoint, table):
    store = open_dynamo(endpoint, table)
    with closing(store.client):
        yield store


def test_table_is_made_though_the_answer_was_lost_and_boto_asked_again(dynamo_endpoint, table):
    with losing_answers(dynamo_endpoint, {"CreateTable"}) as (between, seen), opened(between, table) as store:
        store.create_table()

        assert seen.count("CreateTable") == 2
        said = store.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        assert (said["TimeToLiveStatus"], said["AttributeName"]) == ("ENABLED", "ttl")


def test_ttl_that_was_set_by_the_request_before_is_no_mistake(dynamo_endpoint, table):
    enabled = {
        "__type": "com.amazon.coral.validate#ValidationException",
        "message": "TimeToLive is already enabled",
    }
    between = losing_answers(dynamo_endpoint, {"UpdateTimeToLive"}, {"UpdateTimeToLive": (400, enabled)})
    with between as (address, seen), opened(address, table) as store:
        store.create_table()
        store.create_table()

        assert seen.count("UpdateTimeToLive") == 3


def test_new_table_that_is_not_found_for_a_moment_is_waited_for(dynamo_endpoint, table):
    absent = {"__type": "x#ResourceNotFoundException", "message": "Requested resource not found"}
    between = losing_answers(dynamo_endpoint, {}, first={"DescribeTable": (400, absent)})
    with between as (address, seen), opened(address, table) as store:
        store.create_table()

        assert seen.count("DescribeTable") == 2


def test_table_with_other_keys_is_named_with_what_was_expected(dynamo_endpoint, table):
    told = []
    others = {
        "name (S, HASH)": [("name", "S", "HASH")],
        "key (B, HASH)": [("key", "B", "HASH")],
        "key (S, HASH), at (N, RANGE)": [("key", "S", "HASH"), ("at", "N", "RANGE")],
    }
    for number, (found, keys) in enumerate(others.items()):
        name = f"{table}-{number}"
        with opened(dynamo_endpoint, name) as store:
            store.client.create_table(
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind} for key, kind, _ in keys],
                KeySchema=[{"AttributeName": key, "KeyType": role} for key, _, role in keys],
            )
            with pytest.raises(StoreUnavailable) as refused:
                store.create_table()
        told.append(
            f"the table {name} exists and has the key {found}; expected key (S, HASH) alone"
            in str(refused.value)
        )

    assert told == [True] * len(others)


def test_table_with_another_ttl_attribute_is_refused(dynamo_endpoint, table):
    enabled = {
        "__type": "x#ValidationException",
        "message": "TimeToLive is active on a different AttributeName",
    }
    between = losing_answers(dynamo_endpoint, {}, {"UpdateTimeToLive": (400, enabled)})
    with between as (address, _), opened(address, table) as store:
        dynamo = store.client
        dynamo.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[TEXT_KEY],
            KeySchema=[HASH],
        )
        specification = {"Enabled": True, "AttributeName": "gone_at"}
        dynamo.update_time_to_live(TableName=table, TimeToLiveSpecification=specification)

        with pytest.raises(StoreUnavailable, match="the TTL attribute gone_at; expected ttl"):
            store.create_table()
