"""What the description of commands says holds, whatever is asked."""

import pytest
from hypothesis import HealthCheck, settings

from tests.support.commands import TOKENS

SETTINGS = settings(
    max_examples=20, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True, database=None
)


def test_commands_answer_as_their_description_says(shop):
    pytest.importorskip("schemathesis")
    from tests.support import described  # noqa: PLC0415  a second of importing, for two tests

    token = {"Authorization": f"Bearer {TOKENS['SHOP']}"}

    def ask(case):
        case.call_and_validate(headers=token)

    described.check(shop.app, "/commands/openapi.json", ask, SETTINGS, headers=token)
