"""People and programs: which may do what, and what they did.

- `api_tokens`: tokens of the admin API and their scopes
- `dashboard_sessions`: sign-in links that were used, sessions that were ended
- `audit_log`: what people did
"""
