"""The worker class of releases that had gevent, under its old name; it goes with the next one."""

from typing import Any

from hookonce.receiver.web.worker import LoopWorker


class GeventWorker(LoopWorker):
    """The worker of today, which says what to write instead."""

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:  # noqa: ANN401  gunicorn has no types
        """Warn, and refuse settings that would be passed over."""
        log.warning(
            "the worker class hookonce.receiver.web.gevent_worker.GeventWorker is now called "
            "hookonce.receiver.web.worker.LoopWorker; leave worker_class out, or write the new name"
        )
        super().check_config(cfg, log)
