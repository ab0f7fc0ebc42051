"""Access to the inbox: `tokens` of the API, `keys` that seal what is kept, and in `history` who did what."""
