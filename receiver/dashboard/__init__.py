"""The dashboard under /admin: what an operator sees and fixes with a browser. Off unless a token is configured.

`mount` puts it into the application and `blueprint` is what all pages share. `sign_in` lets a person in, slowed down
by `sign_in_throttle`, and `sessions` remembers who is in. The pages:

- `overview`, with `alert_links`
- `find`, the field on top; `events`, the list, of which `event_selection` replays several
- `event_page`
- `issues`, `bulk_replay`
- `lists`: alerts, stopped steps, commands, bulk replays, audit, limits
- `rejected`, `reverify`
- `source_pages`
- `handlers`
- `documents`
- `operations`: a form for everything else that the desk does

`tabs` says which of them stand on top. What they are made of: `event_form` reads a filter, `charts` draws bars,
`highlighting` colours code, and `template_filters` writes values.
"""
