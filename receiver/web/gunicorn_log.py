"""gunicorn's own messages as the JSON lines that everything else is logged in."""

import logging

from gunicorn.config import Config
from gunicorn.glogging import Logger

from hookonce.receiver import logs


class JsonLogger(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's logger, but for the form of its messages; an access log, where one is asked for, stays as it is.

    Nothing is logged at DEBUG: there gunicorn names every path, and some end in a secret.
    """

    def setup(self, cfg: Config) -> None:
        """Set the handlers up, at start and when the configuration is read again."""
        super().setup(cfg)
        self.error_log.addFilter(_is_news)
        self.error_log.setLevel(max(self.error_log.level, logging.INFO))
        for handler in self.error_log.handlers:
            handler.setFormatter(logs.formatter())


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a line says more than that Ctrl-C has ended a process before it could listen to signals."""
    return not record.getMessage().endswith(("was sent SIGINT!", "was sent SIGQUIT!"))
