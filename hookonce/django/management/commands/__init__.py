"""The commands of `manage.py`: `hookonce_worker`."""
