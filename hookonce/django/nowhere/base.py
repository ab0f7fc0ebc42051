"""Django's engine for PostgreSQL, which says in a line what is missing where it would have to connect to nothing.

Settings are imported without a server, so that `check`, `makemigrations` and the build of an image work. Commands that
do connect end with that line, not with Django's traceback.
"""

from typing import Any, Final

from django.core.management.base import CommandError
from django.db.backends.postgresql import base
from django.db.utils import OperationalError

from hookonce.receiver.config.servers import NO_POSTGRESQL

HOST: Final = "nowhere"
"""The host in a database entry that names no server; a server that tests put in its place is connected to as ever."""


class NoDatabase(OperationalError, CommandError):  # type: ignore[misc]  # noqa: N818  shown as `NoDatabase: …`
    """No database is named: an error of the database for who catches such, and a command's last line."""


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]
    """A connection that can't be made while its entry names no database."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:  # noqa: ANN401  Django's
        """Connect. Raises `NoDatabase` where nothing says to what."""
        if self.settings_dict["HOST"] == HOST:
            raise NoDatabase(NO_POSTGRESQL)
        return super().get_new_connection(conn_params)
