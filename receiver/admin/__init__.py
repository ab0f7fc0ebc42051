"""The dashboard under /admin: what an operator sees and mends with a browser. Off unless a token is configured."""
