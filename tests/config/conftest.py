import pytest

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings

SERVERS = {"DATABASE_URL": "postgresql:///x", "REDIS_URL": "redis://x"}


@pytest.fixture
def load(tmp_path):
    """Read a file of this text, in an environment with both servers."""

    def load(text, *, need_secrets=True, **environ):
        path = tmp_path / "hookonce.toml"
        path.write_text(text)
        place = {"HOOKONCE_CONFIG": str(path), "HOOKONCE_DATA": str(tmp_path)}
        return load_settings(place | SERVERS | environ, need_secrets=need_secrets)

    return load


@pytest.fixture
def mistakes(load):
    def mistakes(text, **environ):
        with pytest.raises(ConfigError) as caught:
            load(text, **environ)
        return caught.value.mistakes

    return mistakes
