"""What the OpenAPI document says holds, whatever is asked."""

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, settings

from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import handshake_secrets, rejected
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

SETTINGS = settings(
    max_examples=3, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True, database=None
)


@pytest.fixture(scope="module")
def full(calm):
    """An inbox that has something of everything."""
    calm.deliver("evt_1", "evt_2", status="dead")
    calm.deliver("evt_3", status="held")
    store(calm.connection, [new_event("evt_1", b"[]")])
    refused = rejected.Sample(datetime.now(UTC), "stripe", "stale", "why", '{"a": "b"}', b"\xff")
    rejected.add_rejections(calm.connection, [refused], {("stripe", "stale"): 1})
    handshake_secrets.keep(calm.connection, "asana", "secret", OFF)
    return calm


def test_api_answers_as_its_document_says(full):
    pytest.importorskip("schemathesis")
    from tests.support import described  # noqa: PLC0415  a second of importing, for two tests

    def ask(case):
        # A compressed answer is left as it is by the client of these tests.
        headers = {"Authorization": f"Bearer {full.tokens['admin']}", "Accept-Encoding": "identity"}
        case.call_and_validate(headers=headers)

    described.check(full.app, "/api/v1/openapi.json", ask, SETTINGS)
