import pytest

from hookonce.receiver.api.routes import OPERATIONS


@pytest.mark.parametrize(
    ("header", "challenge"),
    [
        ({}, 'Bearer realm="hookonce"'),
        ({"Authorization": "Basic YTpi"}, 'Bearer realm="hookonce", error="invalid_request"'),
        ({"Authorization": "Bearer"}, 'Bearer realm="hookonce", error="invalid_request"'),
        ({"Authorization": "Bearer short"}, 'Bearer realm="hookonce", error="invalid_token"'),
        ({"Authorization": "Bearer hko_" + "a" * 43}, 'Bearer realm="hookonce", error="invalid_token"'),
    ],
)
def test_request_is_refused_without_a_good_token(calm, header, challenge):
    answer = calm.ask("GET", "/events", scope=None, headers=header)

    assert (answer.status_code, answer.json["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == challenge


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM hookonce.api_tokens",
        "UPDATE hookonce.api_tokens SET expires_at = now() - interval '1 second'",
    ],
)
def test_token_is_worthless_once_revoked_or_expired(inbox, change):
    inbox.connection.execute(change)

    assert inbox.ask("GET", "/token").status_code == 401


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_operation_is_refused_to_tokens_without_its_scope(calm, operation):
    path = (
        operation.path.replace("{kind}", "source").replace("{name}", "stripe").replace("{source}", "stripe")
    )
    path = path.replace("{event}", "1").replace("{bulk}", "1")
    action = operation.action
    others = [
        scope
        for scope in ("read", "replay")
        if action.scope and scope not in {action.scope, action.plan_scope}
    ]

    answers = [calm.ask(operation.method, path, scope=scope) for scope in others]

    assert [answer.status_code for answer in answers] == [403] * len(others)
    assert all(f'scope="{action.scope}"' in answer.headers["WWW-Authenticate"] for answer in answers)


def test_change_is_audited_under_the_name_of_the_token(inbox):
    (event,) = inbox.deliver("evt_1", status="held")

    inbox.ask("POST", "/releases", {"events": [event]}, scope="replay")

    assert inbox.rows("SELECT who, action, subject FROM hookonce.audit WHERE action = 'release'") == [
        ("replay (token)", "release", f"event {event}")
    ]
