"""HTTP/1.x as strangers speak it, by a server that may face the network, in plain or under TLS, without a proxy.

`limits` holds every number. Without sockets: `head` reads request lines and headers (llhttp, and what it lets pass),
`chunks` reads chunked bodies, `request` is what endpoints and WSGI applications see of one, `answer` writes answers.
With sockets: `transport` is a client in plain or under TLS, `clients` tells clients apart by address, `turns` decides
who goes on, `crowd` who may stay, `body_stream` reads bodies, `connection` is the conversation with one client, and
`application` calls what is no endpoint in threads. `settings` refuses what this front does not honour.
"""
