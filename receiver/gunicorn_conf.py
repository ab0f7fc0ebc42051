"""gunicorn's settings: gevent workers, so that a stalled client costs a greenlet and not a thread.

Overridable from gunicorn's command line or GUNICORN_CMD_ARGS.
"""

import os

bind = os.environ.get("HOOKONCE_BIND") or f"0.0.0.0:{os.environ.get('PORT', '8000')}"
worker_class = "gevent"
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
worker_connections = 4000
keepalive = 15  # also the time a request's head may take to arrive
timeout = 30
graceful_timeout = 25
limit_request_line = 4094
limit_request_fields = 100
limit_request_field_size = 65536  # ours to judge: some senders' headers are long
http_parser = "python"  # the C parser takes bare LF and folded headers
control_socket_disable = True  # it would lie in the home directory
accesslog = None
loglevel = os.environ.get("HOOKONCE_LOG_LEVEL", "warning").lower()
