"""HQ as a DNS zone: `web.service.hq.internal.` has the addresses of the ready instances of `web`.

`wire` reads questions and writes records; `names` parses names; `zone` answers from the picture; `spread` chooses
records where not all can be sent; `responder` is the server without its sockets: a message in, a message out; `sockets`
are UDP and TCP.
"""
