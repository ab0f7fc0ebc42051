import pytest

from hookonce.receiver.outbound.forwarding import allowed


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("http://localhost:8000/hooks", True),
        ("http://localhost:8000/hooks/stripe?x=1", True),
        ("http://localhost:8000/hooksX", False),
        ("http://localhost:8000/hooks/../admin", False),
        ("http://localhost:8000/hooks/%2e%2e/admin", False),
        ("http://localhost:8000/hooks/.%2E/admin", False),
        ("http://localhost:8000/hooks/%252e%252e/admin", False),
        ("http://localhost:8000/hooks/..%5cadmin", False),
        ("http://localhost:8000/hooks/%5cadmin", False),
        ("http://localhost:8000/hooks/a%20b", True),
        ("http://localhost:80001/hooks/", False),
        ("https://localhost:8000/hooks/", False),
        ("http://localhost:8000@evil.example/hooks/", False),
    ],
)
def test_address_is_allowed_below_one_that_is_named(url, is_allowed):
    assert allowed(url, ["http://localhost:8000/hooks/"]) is is_allowed
