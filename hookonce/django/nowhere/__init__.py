"""The engine of an entry in DATABASES that nothing names a database for; Django looks for it in `base`."""
