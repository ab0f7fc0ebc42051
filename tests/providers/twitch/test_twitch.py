from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load


def test_twitch_message_of_another_kind_is_its_own_type():
    headers = {"twitch-eventsub-message-id": "1", "twitch-eventsub-subscription-type": "channel.follow"}
    kinds = {"notification": "channel.follow", "revocation": "revocation"}

    for kind, expected in kinds.items():
        delivery = Delivery("POST", "", {**headers, "twitch-eventsub-message-type": kind}, b"{}")
        assert load("twitch").events(delivery)[0].type == expected
