"""The schema this code was written for; `serve` and `worker` refuse an older one."""

REVISION = "0003"
