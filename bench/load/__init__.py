"""`deliveries` makes the requests, `generator` sends them in a process of its own, `sending` starts it and reads it."""
