"""Which of gunicorn's settings this front honours: one that would be passed over in silence is refused at start."""

from typing import Any

HONOURED = frozenset(
    {
        # the arbiter's, who does not ask its workers
        "config", "wsgi_app", "bind", "backlog", "workers", "worker_class", "timeout", "graceful_timeout", "reload",
        "reload_engine", "reload_extra_files", "spew", "check_config", "print_config", "preload_app", "reuse_port",
        "chdir", "daemon", "raw_env", "pidfile", "worker_tmp_dir", "user", "group", "umask", "initgroups",
        "errorlog", "loglevel", "capture_output", "logger_class", "logconfig", "logconfig_dict", "logconfig_json",
        "syslog", "syslog_addr", "syslog_prefix", "syslog_facility", "enable_stdio_inheritance", "proc_name",
        "default_proc_name", "pythonpath", "paste", "raw_paste_global_conf", "on_starting", "on_reload", "when_ready",
        "pre_fork", "post_fork", "post_worker_init", "worker_int", "worker_abort", "pre_exec", "child_exit",
        "worker_exit", "nworkers_changed", "on_exit", "control_socket", "control_socket_mode",
        "control_socket_disable", "enable_backlog_metric", "disable_redirect_access_to_syslog",
        # ours
        "worker_connections", "max_requests", "max_requests_jitter", "keepalive", "limit_request_line",
        "limit_request_fields", "limit_request_field_size", "accesslog", "access_log_format", "statsd_host",
        "statsd_prefix", "dogstatsd_tags", "ssl_context", "keyfile", "certfile", "ssl_version", "cert_reqs",
        "ca_certs", "ciphers",
        # meant for what is not used here: no header of a proxy is believed, whoever sends it
        "forwarded_allow_ips", "proxy_allow_ips", "uwsgi_allow_ips", "tmp_upload_dir", "http2_max_concurrent_streams",
        "http2_initial_window_size", "http2_max_frame_size", "http2_max_header_list_size", "asgi_loop",
        "asgi_lifespan", "asgi_disconnect_grace_period", "websocket_max_message_size", "dirty_timeout",
        "dirty_threads", "dirty_graceful_timeout", "sendfile",
    }
)  # fmt: skip
ALLOWED = {
    "http_parser": {"auto", "python"},
    "secure_scheme_headers": {"{}"},
    "forwarder_headers": {"[]", ""},
    "header_map": {"drop", "refuse"},
}
"""Settings that other workers have, and the values of them that mean no more than what is done here anyway."""


def require_honoured(cfg: Any) -> None:  # noqa: ANN401  gunicorn has no types
    """Raise a RuntimeError that names each setting that is not as it comes, and that nobody here would heed."""
    ignored = [name for name, setting in cfg.settings.items() if not _is_honoured(name, setting)]
    if ignored:
        raise RuntimeError(  # what gunicorn shows without a traceback
            f"hookonce's worker does not honour the gunicorn settings {', '.join(sorted(ignored))}; leave them out, "
            "or choose another worker class, e.g. --worker-class gevent"
        )


def _is_honoured(name: str, setting: Any) -> bool:  # noqa: ANN401
    if name in HONOURED:
        return True
    value = setting.get()
    return value == type(setting)().get() or str(value) in ALLOWED.get(name, ())
