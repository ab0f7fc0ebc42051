"""*Sources*: `sources` lists them, judged by `source_health`, `source` shows one, and sends it a sample."""
