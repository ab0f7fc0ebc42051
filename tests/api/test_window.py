"""`POST /window/forget`: what counts is in the ledger."""

import pytest

from tests.api.conftest import open_inbox

KEY = "SELECT window_key FROM hookonce.ledger"
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.mark.parametrize(("is_there", "forgotten"), [(True, 0), (False, None)])
def test_window_is_forgotten_by_another_key_even_while_redis_is_away(
    database_url, redis_url, is_there, forgotten
):
    with open_inbox(database_url, redis_url if is_there else NOWHERE) as inbox:
        before = inbox.rows(KEY)

        answer = inbox.ask("POST", "/window/forget")

        assert (answer.status_code, answer.json) == (200, {"forgotten": forgotten})
        assert inbox.rows(KEY) != before
