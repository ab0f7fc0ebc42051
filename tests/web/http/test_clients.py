"""Clients are told apart by address; what they owe, and who of them makes room."""

import asyncio
import ssl
from ipaddress import ip_network

import pytest

from hookonce.receiver.web.http import clients as clients_module
from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.clients import Client, Clients
from hookonce.receiver.web.http.crowd import ByClient, Crowd
from hookonce.receiver.web.http.transport import Gone, SecureTransport
from hookonce.receiver.web.http.turns import Account, Turns
from tests.web.http.test_limits import Member


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1000.0

    monkeypatch.setattr(clients_module, "monotonic", lambda: Clock.now)
    return Clock


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "no address", True),
    ],
)
def test_client_is_an_address_or_a_customers_network(one, other, are_one):
    clients = Clients()

    assert (clients.at(one) is clients.at(other)) == are_one


def test_clients_are_forgotten_beyond_their_number():
    clients = Clients(size=2)
    first, second = clients.at("192.0.2.1"), clients.at("192.0.2.2")

    assert clients.at("192.0.2.1") is first
    clients.at("192.0.2.3")

    assert clients.at("192.0.2.1") is first
    assert clients.at("192.0.2.2") is not second


def test_debt_counts_only_while_another_client_wants_something(clock):
    clients = Clients()
    greedy, other = clients.at("192.0.2.1"), clients.at("192.0.2.2")
    account = Account(greedy, clients)
    greedy.charge(10)

    clients.note(greedy)
    alone = account.is_small
    clients.note(other)
    clients.note(greedy)
    beside = account.is_small
    clock.now += limits.RECENT
    again = account.is_small

    assert (alone, beside, again) == (True, False, True)


def test_debt_is_forgiven_with_time(clock):
    client = Client()
    client.charge(1.0)

    clock.now += 0.5 / limits.CLIENT_ALLOWANCE_A_SECOND
    client.charge(0)

    assert client.debt == pytest.approx(0.5)


def test_events_pay_for_strangers_of_their_address_up_to_a_bound():
    client = Client()
    for _ in range(10_000):
        client.earn()

    client.charge(limits.MOST_CREDIT / 2)
    before = client.is_small, client.debt
    client.charge(limits.MOST_CREDIT)

    assert before == (True, 0.0)
    assert client.debt == pytest.approx(limits.MOST_CREDIT / 2, abs=0.01)
    assert not client.is_small


def test_connection_that_brought_an_event_is_small_whatever_its_client_owes():
    clients = Clients()
    shared, other = clients.at("192.0.2.1"), clients.at("192.0.2.2")
    sender, stranger = Account(shared, clients), Account(shared, clients)
    sender.settle(is_genuine=True, is_replay=False)
    shared.charge(10)
    clients.note(other)
    clients.note(shared)

    assert (sender.is_small, stranger.is_small) == (True, False)


def test_replays_make_nobody_genuine_and_are_charged_to_the_client():
    clients = Clients()
    account = Account(clients.at("192.0.2.1"), clients)

    for _ in range(200):
        account.settle(is_genuine=True, is_replay=True)

    assert not account.is_genuine
    assert account.client.credit == 0
    assert not account.client.is_small
    assert account.debt < limits.ALLOWANCE


def test_oldest_of_the_client_with_most_connections_makes_room():
    one, many = Client(), Client()
    lonely, *crowded = [Member(one), *(Member(many) for _ in range(3))]
    waiting = ByClient()
    for member in (lonely, *crowded):
        waiting.add(member)

    gone = [waiting.take_first_to_go() for _ in range(5)]

    assert gone == [crowded[0], crowded[1], lonely, crowded[2], None]


def test_connections_by_client_are_counted_as_they_come_and_go():
    clients = [Client() for _ in range(3)]
    members = [Member(clients[n % 3]) for n in range(30)]
    waiting = ByClient()
    for member in members:
        waiting.add(member)

    for member in members[::2]:
        waiting.discard(member)
    for member in members[:6]:
        waiting.add(member)
    left = []
    while (member := waiting.take_first_to_go()) is not None:
        left.append(member)

    assert len(left) == len(set(left)) == 18
    assert not len(waiting)


def test_genuine_connections_make_room_when_they_are_more_than_half():
    crowd, sender, stranger = Crowd(4), Client(), Client()
    genuine = [Member(sender) for _ in range(3)]
    young = Member(stranger)
    for member in (*genuine, young):
        crowd.enter(member)
    for member in genuine:
        crowd.works(member)
        member.is_genuine = True
        crowd.rests(member)

    made = [crowd.make_room(), crowd.make_room()]

    assert made == [True, True]
    assert [each.ended for each in (*genuine, young)] == ["evicted", "", "", "evicted"]


async def order_of(places):
    """Let some stand in line at once; give the order in which they go on."""
    turns, order = Turns(asyncio.get_running_loop()), []

    async def stand(name, place):
        await turns.wait(place)
        order.append(name)

    async with asyncio.timeout(5):
        await asyncio.gather(*(stand(name, place) for name, place in places.items()))
    return order


def test_client_that_owes_least_goes_on_first_and_of_its_connections_the_one_that_does():
    places = {"greedy": (2.0, 0.0), "modest, used": (0.5, 1.0), "modest": (0.5, 0.1), "new": (0.0, 0.0)}

    assert asyncio.run(order_of(places)) == ["new", "modest", "modest, used", "greedy"]


def test_handshakes_of_the_client_that_owes_least_come_first():
    async def shake():
        turns, order = Turns(asyncio.get_running_loop()), []
        flood, sender = Client(), Client()
        flood.charge(1)

        async def wait(client):
            await turns.wait_for_handshake(client)
            order.append(client)

        async with asyncio.timeout(5):
            await asyncio.gather(*(wait(each) for each in [flood] * 20 + [sender] * 2))
        return [each is sender for each in order]

    assert asyncio.run(shake())[:2] == [True, True]


class Sink:
    """The side of a transport that sends nowhere."""

    def set_write_buffer_limits(self, _high):
        pass

    def pause_reading(self):
        pass

    resume_reading = pause_reading


HELLO = b"\x16\x03\x01\x00\x05hello"


@pytest.mark.parametrize(
    ("pieces", "is_waited_for"),
    [
        ([HELLO], False),
        ([HELLO[:3], HELLO[3:9], HELLO[9:]], False),
        ([HELLO[:-1]], True),
        ([b"\x16"], True),
        ([b"G"], False),
        ([b"\x16\x03\x01\xff\xff" + b"x" * limits.HELLO_SIZE], False),
    ],
    ids=["whole", "in pieces", "half", "a byte", "no TLS", "huge"],
)
def test_tls_is_begun_when_the_first_record_is_there(pieces, is_waited_for):
    async def greet():
        transport = SecureTransport(asyncio.get_running_loop(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        transport.connection_made(Sink())
        greeting = asyncio.ensure_future(transport.greet())
        for piece in pieces:
            await asyncio.sleep(0)
            transport.get_buffer(-1)[: len(piece)] = piece
            transport.buffer_updated(len(piece))
        for _ in range(5):
            await asyncio.sleep(0)
        waits = not greeting.done()
        transport.eof_received()
        if waits:
            with pytest.raises(Gone):
                await greeting
        return waits

    assert asyncio.run(greet()) == is_waited_for


@pytest.mark.parametrize(
    ("peer", "proxies", "forwarded", "client"),
    [
        ("10.0.0.1", ("10.0.0.0/8",), "192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", ("10.0.0.0/8",), "203.0.113.5, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", ("10.0.0.0/8",), "", "10.0.0.1"),
        ("10.0.0.1", (), "192.0.2.1", "10.0.0.1"),
        ("198.51.100.1", ("10.0.0.0/8",), "192.0.2.1", "198.51.100.1"),
        ("", ("10.0.0.0/8",), "192.0.2.1", "192.0.2.1"),
    ],
    ids=["declared", "lied to", "says nothing", "undeclared", "another", "a unix socket"],
)
def test_client_is_whom_a_declared_proxy_names(peer, proxies, forwarded, client):
    clients = Clients(tuple(map(ip_network, proxies)))

    found = clients.at(peer, forwarded)

    assert found is clients.at(client)
    assert clients.is_proxy(peer) == (found is not clients.at("198.51.100.1") and bool(proxies))
