"""What the OpenAPI document says holds, whatever is asked."""

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, settings

from hookonce.receiver.api.openapi import document
from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import handshake_secrets, rejected
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

schemathesis = pytest.importorskip("schemathesis")


class Served:
    """The application once there is one; until then, while tests are collected, its document."""

    app = None

    def __call__(self, environ, start_response):
        if self.app is not None:
            return self.app(environ, start_response)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [document()]


served = Served()
schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", served)


@pytest.fixture(scope="module")
def full(calm):
    """An inbox that has something of everything."""
    calm.deliver("evt_1", "evt_2", status="dead")
    calm.deliver("evt_3", status="held")
    store(calm.connection, [new_event("evt_1", b"[]")])
    refused = rejected.Rejection(datetime.now(UTC), "stripe", "stale", "why", '{"a": "b"}', b"\xff")
    rejected.add_rejections(calm.connection, [refused], {("stripe", "stale"): 1})
    handshake_secrets.keep(calm.connection, "asana", "secret", OFF)
    served.app = calm.app
    yield calm
    served.app = None


@schema.parametrize()
@settings(
    max_examples=3, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True, database=None
)
def test_api_answers_as_its_document_says(case, full):
    case.call_and_validate(headers={"Authorization": f"Bearer {full.tokens['admin']}"})
