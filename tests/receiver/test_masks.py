import pytest

from providers.kit.registry import load
from receiver.masks import masked_url
from receiver.sources import Source

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
