import pytest

HOOK = "https://api.github.com/repos/octocat/Hello-World/hooks/12345678"
GITHUB = f'[sources.github]\nsecrets = ["env:S?"]\napi = "{HOOK}"\n'


def test_key_is_not_in_the_settings(load):
    settings = load(GITHUB + 'api_key = "env:K"\nreconcile = "1h"', K="github_pat_1")

    assert settings.sources["github"].api_key == "env:K"
    assert "github_pat_1" not in repr(settings)
    assert "github_pat_1" not in settings.secrets()


@pytest.mark.parametrize(
    "api",
    [
        HOOK,
        "https://api.github.com/orgs/octocat/hooks/1",
        "https://api.github.com/app/hook",
    ],
)
def test_hooks_of_github_are_known_by_their_address(load, api):
    toml = f'[sources.github]\nsecrets = ["env:S?"]\napi_key = "env:K"\nreconcile = "1h"\napi = "{api}"'

    assert load(toml).sources["github"].api == api


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        (GITHUB + 'reconcile = "1h"', "needs api_key"),
        (GITHUB + 'api_key = "github_pat_1"\nreconcile = "1h"', "needs api_key"),
        (GITHUB + 'api_key = "env:K"\nreconcile = "1m"', "reconcile is shorter than 10m"),
        (GITHUB + 'api_key = "env:K"\nreconcile = "1h"\nid = "$.a"', "has reconcile and id"),
        (
            GITHUB.replace("api.github.com", "10.0.0.1") + 'api_key = "env:K"\nreconcile = "1h"',
            "api is not an address",
        ),
        (
            GITHUB.replace("/hooks", "/../hooks") + 'api_key = "env:K"\nreconcile = "1h"',
            "api is not an address",
        ),
        (
            '[sources.stripe]\nsecrets = ["env:S?"]\napi_key = "env:K"\napi = "https://x"',
            "api is not an address",
        ),
        ('[sources.slack]\nsecrets = ["env:S?"]\napi_key = "env:K"\nreconcile = "1h"', "slack is not asked"),
        (
            '[sources.slack]\nsecrets = ["env:S?"]\napi_key = "env:K"\nrenew = [{resource = "x"}]',
            "no subscriptions",
        ),
        (
            '[sources.microsoft_graph]\nsecrets = ["env:S?"]\napi_key = "env:K"\nrenew = [{resource = "x"}]',
            "no https URL",
        ),
        (
            '[sources.google_drive]\nsecrets = ["env:S?"]\napi_key = "env:K"\nrenew = [{resource = "https://e.example/"}]',
            "renew names 'https://e.example/'",
        ),
    ],
)
def test_what_can_not_be_asked_is_a_mistake(mistakes, toml, told):
    found = str(mistakes(toml))

    assert told in found
    assert "github_pat_1" not in found
