"""Brokers, both ways: one module and one extra per kind, imported where a configuration names the kind.

`port` is what each does. `nats`, `sqs` and `rabbitmq` do it. `endpoint` posts to an endpoint of the configuration, at
the address that was checked.
"""

from hookonce.receiver.config.addresses import Address
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.outbound.brokers.port import Broker


def broker(address: Address, source: str = "") -> Broker:
    """Return the client of an address, not connected yet; it takes messages in the name of a source.

    Raises `ConfigError` where the extra of its kind is missing.
    """
    try:
        if address.kind == "nats":
            from hookonce.receiver.outbound.brokers.nats import Nats

            return Nats(address, source)
        if address.kind == "sqs":
            from hookonce.receiver.outbound.brokers.sqs import Sqs

            return Sqs(address)
        from hookonce.receiver.outbound.brokers.rabbitmq import Rabbit

        return Rabbit(address)
    except ImportError:
        text = f"addresses of {address.kind} need a package more; run pip install 'hookonce[{address.kind}]'"
        raise ConfigError([text]) from None
