"""*Sources*: `sources` lists them, judged by `source_health`, `source` shows one, `test_event` sends it a sample."""
