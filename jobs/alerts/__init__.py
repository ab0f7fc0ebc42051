"""Alerts: problems that the sweep finds, and that are told.

- `conditions`: what raises an alert
- `missing_deliveries`: a source that is silent against its habit
- `watcher`: raises and resolves
- `delivery`: sends alerts, as a handler
- `messages`: alerts as people read them, in each target's form
"""
