from ipaddress import ip_network

import pytest

from hookonce.receiver.web.client_address import client_address


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "203.0.113.9, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "203.0.113.9,192.0.2.1, 10.0.0.2", "192.0.2.1"),
        ("::ffff:10.0.0.1", "192.0.2.1:4711", "192.0.2.1"),
        ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
        ("10.0.0.1", "2001:db8::1", "2001:db8::1"),
        ("10.0.0.1", "192.0.2.1, unknown", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.1, unknown, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("198.51.100.1", "192.0.2.1", "198.51.100.1"),
        ("", "192.0.2.1", "192.0.2.1"),
        ("", "", ""),
    ],
)
def test_client_is_whom_the_last_trusted_proxy_heard(peer, forwarded, client):
    assert client_address(peer, forwarded, (ip_network("10.0.0.0/8"),)) == client


def test_client_is_who_connects_where_no_proxy_is_trusted():
    assert client_address("10.0.0.1", "192.0.2.1", ()) == "10.0.0.1"
