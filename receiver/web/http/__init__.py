"""HTTP/1.x as strangers speak it: bytes to a WSGI request, an answer to bytes, and whose turn it is meanwhile.

`limits` holds every number. Without sockets: `head` reads request lines and headers (llhttp, and what it lets pass),
`chunks` reads chunked bodies, `environ` makes a WSGI environment, `answer` writes answers. With sockets: `transport` is
a client in plain or under TLS, `turns` decides who goes on, `crowd` who may stay, `body_stream` is `wsgi.input`, and
`connection` is the loop. `settings` refuses what this front does not honour.
"""
