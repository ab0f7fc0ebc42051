"""The WSGI application: `gunicorn -c python:hookonce.receiver.web.gunicorn_conf wsgi:application`."""

from hookonce.receiver.app import from_environment

application = from_environment()
