"""The window is forgotten by a new key, which is in the ledger."""

import pytest

from tests.desk.conftest import at_the_desk

KEY = "SELECT window_key FROM hookonce.ledger"
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.mark.parametrize(("is_there", "forgotten"), [(True, 0), (False, None)])
def test_window_is_forgotten_by_another_key_even_while_redis_is_away(
    database_url, redis_url, is_there, forgotten
):
    with at_the_desk(database_url, redis_url if is_there else NOWHERE) as here:
        before = here.rows(KEY)

        answer = here.ask("forget_window")

        assert (answer.kind, answer.json) == ("done", {"forgotten": forgotten})
        assert here.rows(KEY) != before
