"""gunicorn's own messages as the JSON lines that everything else is logged in."""

from gunicorn.config import Config
from gunicorn.glogging import Logger

from receiver import logs


class JsonLogger(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's logger, but for the form of what it says; an access log, where one is asked for, stays as it is."""

    def setup(self, cfg: Config) -> None:
        """Set the handlers up, at start and when the configuration is read again."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(logs.formatter())
