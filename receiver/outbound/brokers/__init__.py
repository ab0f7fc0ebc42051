"""Brokers, both ways: one module and one extra per kind, imported where a configuration names the kind.

`port` says what each is asked for. `nats`, `sqs` and `rabbitmq` do it.
"""

from hookonce.receiver.config.addresses import Address
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.outbound.brokers.port import Publisher, Subscription


def publisher(address: Address) -> Publisher:
    """Return what sends to an address; nothing is connected yet. Raises `ConfigError` where its extra is missing."""
    with _Extra(address.kind):
        if address.kind == "nats":
            from hookonce.receiver.outbound.brokers.nats import NatsPublisher

            return NatsPublisher(address)
        if address.kind == "sqs":
            from hookonce.receiver.outbound.brokers.sqs import SqsPublisher

            return SqsPublisher(address)
        from hookonce.receiver.outbound.brokers.rabbitmq import RabbitPublisher

        return RabbitPublisher(address)


def subscription(address: Address, name: str) -> Subscription:
    """Return what takes from an address, in the name of a source. Raises as `publisher`."""
    with _Extra(address.kind):
        if address.kind == "nats":
            from hookonce.receiver.outbound.brokers.nats import NatsSubscription

            return NatsSubscription(address, name)
        if address.kind == "sqs":
            from hookonce.receiver.outbound.brokers.sqs import SqsSubscription

            return SqsSubscription(address)
        from hookonce.receiver.outbound.brokers.rabbitmq import RabbitSubscription

        return RabbitSubscription(address)


class _Extra:
    """Says which extra is missing, where an import fails."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, ImportError):
            raise ConfigError(
                [f"addresses of {self._kind} need a package more; run pip install 'hookonce[{self._kind}]'"]
            ) from None
