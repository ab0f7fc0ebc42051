"""The table [admin] of hookonce.toml."""

import pytest


@pytest.mark.parametrize(
    ("setting", "mistake"),
    [
        ('token = "env:ABSENT"', "[admin] token: ABSENT is not set"),
        ('token = "plain text"', "[admin] token: a secret is given by reference"),
        ('token = "env:SHORT"', "the admin token has 5 characters; expected 16 or more"),
        ('tokn = "env:X"', "[admin] has no setting 'tokn'; did you mean 'token'"),
        (
            'trusted_proxies = ["10.0.0.0/8", "proxy.local"]',
            "trusted_proxies: entry 2: 'proxy.local' is not an address or network",
        ),
    ],
)
def test_mistake_in_the_table_is_told(mistakes, setting, mistake):
    (found,) = mistakes(f"[admin]\n{setting}\n", SHORT="short")

    assert mistake in found


def test_optional_token_may_be_absent(load):
    assert load('[admin]\ntoken = "env:ABSENT?"\n').admin.token == ""
