"""A process of `hookonce serve`: what gunicorn's arbiter does in the child that it forks, and nothing else of it.

Requests are so read, answered and given up by the code that does it on the open network.
"""

import os
from functools import cache

from gunicorn import util
from gunicorn.app.base import Application
from gunicorn.sock import UnixSocket

SETTINGS = "python:hookonce.receiver.web.gunicorn_conf"
APPLICATION = "hookonce.receiver.app:from_environment()"


class Served(Application):
    """What `hookonce serve` tells gunicorn to run, without a command line."""

    def load_config(self):
        self.load_config_from_module_name_or_filename(SETTINGS)

    def load(self):
        return util.import_app(APPLICATION)


@cache
def application():
    """Read the settings and make the logger, which the children share."""
    served = Served()
    return served, served.cfg.worker_class, served.cfg.logger_class(served.cfg)


def become(listener):
    """Be the arbiter's child that accepts from this unix socket, until told to stop."""
    served, worker_class, log = application()
    path = listener.getsockname()
    sockets = [UnixSocket(path, served.cfg, log, fd=listener.detach())]
    worker = worker_class(1, os.getppid(), sockets, served, served.cfg.timeout / 2, served.cfg, log)
    worker.pid = os.getpid()
    worker.init_process()
