"""Requests to the door and to the desk are told apart by their port (`receiver.web.mounted.part_of`)."""

from collections.abc import Iterable

from hookonce.receiver.config.mistakes import ConfigError


def require_own_port(desk: str, door_ports: Iterable[str]) -> None:
    """Raise `ConfigError` if the desk's port is one of the door's, at whatever hosts: all would be the desk."""
    for port in door_ports:
        if desk.endswith(f":{port}"):
            said = f"deliveries and the desk, {desk}, both have port {port}; expected two ports, whatever the hosts"
            raise ConfigError(
                [f"{said}; set another with --desk or HOOKONCE_DESK, or `door` for one address"]
            )
