"""The WSGI application: `gunicorn -c python:receiver.gunicorn_conf wsgi:application`, or `hookonce serve`."""

from receiver import logs
from receiver.app import create_app
from receiver.settings import load_settings, require_servers

logs.configure()
_settings = load_settings()
require_servers(_settings)
application = create_app(_settings)
