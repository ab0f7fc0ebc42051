"""Put beside the packages of a copy, whichever commit that is of: the probe, and pytest's plugin."""
