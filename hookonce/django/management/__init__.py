"""`manage.py hookonce_worker`; Django looks for commands here."""
