"""Encryption keys are secrets like any other: no spelling of one stays in what is kept of a handler's words."""

from base64 import b64encode, urlsafe_b64encode

import pytest

from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.privacy.masking import mask_secrets

KEY = bytes(range(200, 232))
OTHER = bytes(range(100, 132))
SPELLINGS = [
    spelled(key)
    for key in (KEY, OTHER)
    for spelled in (
        bytes.hex,
        lambda key: key.hex().upper(),
        lambda key: b64encode(key).decode(),
        lambda key: b64encode(key).decode().rstrip("="),
        lambda key: urlsafe_b64encode(key).decode(),
    )
]


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_encryption_key_is_masked_however_it_is_spelled(tmp_path, spelled):
    (tmp_path / "hookonce.toml").write_text('[receiver]\nencryption_keys = ["env:KEY", "env:OLD"]\n')
    environ = {
        "HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"),
        "KEY": KEY.hex(),
        "OLD": b64encode(OTHER).decode(),
    }
    settings = load_settings(environ)

    masked = mask_secrets(settings.secrets())(f"KeyError: no {spelled} in here")

    assert masked == "KeyError: no [secret] in here"
    assert spelled not in repr(settings)
