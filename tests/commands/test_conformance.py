"""What the description of commands says holds, whatever is asked."""

import pytest
from hypothesis import HealthCheck, settings

from hookonce.receiver.commands import openapi
from hookonce.receiver.config.commands import Command
from tests.support.commands import TOKENS, Shop

schemathesis = pytest.importorskip("schemathesis")
COMMANDS = [
    Command("payments", "shop_of_tests:pay", {}),
    Command("refunds", "shop_of_tests:pay", {}),
    Command("orders", "shop_of_tests:pay", {}, tenant="Tenant", actor="Actor", headers=("Currency",)),
]


class Served:
    """The application once there is one; until then, while tests are collected, its document."""

    app = None

    def __call__(self, environ, start_response):
        if self.app is not None:
            return self.app(environ, start_response)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [openapi.document(COMMANDS)]


served = Served()
schema = schemathesis.openapi.from_wsgi("/commands/openapi.json", served)


@pytest.fixture(scope="module")
def shop(fresh_database, fresh_redis, tmp_path_factory):
    with fresh_database() as database_url, fresh_redis() as redis_url:
        made = Shop(database_url, redis_url, tmp_path_factory.mktemp("shop"))
        served.app = made.app
        yield made
        served.app = None
        made.close()


@schema.parametrize()
@settings(
    max_examples=20, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True, database=None
)
def test_commands_answer_as_their_description_says(case, shop):
    assert shop
    case.call_and_validate(headers={"Authorization": f"Bearer {TOKENS['SHOP']}"})
