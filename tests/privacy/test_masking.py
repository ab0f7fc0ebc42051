import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookonce.providers.kit.registry import load
from hookonce.receiver.privacy.masking import (
    kept_headers,
    kept_headers_as_json,
    mask_secrets,
    masked_url,
)
from hookonce.receiver.source import Source

SOURCE = Source("hmac", load("stripe"), ("s3cret/+", "two words"))


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("a=1&b=2", "a=1&b=2"),
        ("a=1&key=s3cret/+", "a=1&key=[secret]"),
        ("key=s3cret%2F%2B&a=1", "key=[secret]&a=1"),
        ("key=two+words&a=1", "key=[secret]&a=1"),
        ("a=1&%733cret%2f%2b", "a=1&[secret]"),
    ],
)
def test_url_is_kept_without_a_secret_however_it_is_spelled(query, kept):
    assert masked_url(f"/hooks/hmac?{query}", SOURCE) == f"/hooks/hmac?{kept}"


@given(st.dictionaries(st.text() | st.sampled_from(["authorization", "x-token"]), st.text()))
def test_headers_are_spelled_as_json_as_python_does(headers):
    assert kept_headers_as_json(headers, SOURCE) == json.dumps(kept_headers(headers, SOURCE))


def test_secret_of_several_lines_is_masked_line_by_line():
    masked = mask_secrets(["-----BEGIN KEY-----\nMIIBIjANBgkq\n-----END KEY-----"])

    assert masked("the key is MIIBIjANBgkq, the id 12") == "the key is [secret], the id 12"
