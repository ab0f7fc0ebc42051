"""The inbox for agents: tools of the Model Context Protocol over the admin API; needs the extra `mcp`.

Every tool is one or a few requests of the API, under the token of whoever asks, so that its scopes hold here too.

- `api_client`: a request of the API, and its refusals in words
- `fence`: what senders wrote, marked as data
- `lookups`: tools that read
- `replays`: the two tools that run events again, a plan first
- `server`: the tools as a server on stdio or HTTP
"""
