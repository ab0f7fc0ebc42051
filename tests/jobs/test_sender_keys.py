import pytest

from hookonce.jobs.sender_keys import withdraw


def test_variables_of_keys_are_withdrawn_and_no_others(tmp_path):
    file = tmp_path / "hookonce.toml"
    file.write_text(
        '[sources.github]\napi_key = "env:K?"\n[sources.stripe]\napi_key = "file:/k"\n[sources.slack]\n'
    )
    environ = {"HOOKONCE_CONFIG": str(file), "K": "secret", "S": "kept"}

    found = withdraw(environ)

    assert found == {"K": "secret"}
    assert environ == {"HOOKONCE_CONFIG": str(file), "S": "kept"}


@pytest.mark.parametrize(
    "text", ["not [toml", "sources = 3", "[sources]\nstripe = 1", "[sources.a]\napi_key = 5"]
)
def test_nothing_is_withdrawn_by_a_file_that_is_wrong(tmp_path, text):
    file = tmp_path / "hookonce.toml"
    file.write_text(text)

    assert withdraw({"HOOKONCE_CONFIG": str(file), "K": "secret"}) == {}
