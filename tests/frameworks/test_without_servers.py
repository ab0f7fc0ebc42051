"""An application that receives is also imported where no server is: by its tests, and while an image is built."""

import flask
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import hookonce.fastapi
import hookonce.flask
from hookonce.receiver.config.mistakes import ConfigError


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """Run a test in a folder that names a source, without its secret, and no server."""
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "hookonce.toml"
    config.write_text('[sources.stripe]\nprovider = "stripe"\nsecrets = ["env:NOT_SET"]\n')
    return config


def in_flask():
    app = flask.Flask("shop")
    hookonce.flask.mount(app)
    return app.test_client()


def in_fastapi():
    app = FastAPI()
    hookonce.fastapi.mount(app)
    return TestClient(app)


@pytest.mark.parametrize("client", [in_flask, in_fastapi])
def test_delivery_to_an_application_without_servers_gets_503_and_the_log_says_why(client, caplog):
    answer = client().post("/hooks/stripe", json={})

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "set DATABASE_URL" in caplog.text
    assert "set REDIS_URL" in caplog.text


@pytest.mark.parametrize("client", [in_flask, in_fastapi])
def test_mistake_of_the_file_is_told_when_the_application_is_imported(client, nowhere):
    nowhere.write_text('[sources.stripe]\nprovider = "strip"\n')

    with pytest.raises(ConfigError, match="strip"):
        client()


def test_place_without_a_slash_at_both_ends_is_refused():
    with pytest.raises(ValueError, match="a slash at both ends"):
        hookonce.fastapi.mount(FastAPI(), at="/in")
