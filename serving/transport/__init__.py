"""One transport for HTTP/1.1, HTTP/2, gRPC, gRPC-Web, Connect and plain pages, on one port.

Read downward: `server` (what listens, and how it ends) → `connection` (the bytes of one client) → `h1_side`, `h2_side`
(one HTTP each, over the pure machines `serving.h1` and `.h2`) → `exchange` (one request and the way to answer it) →
`router` (whose it is) → `rpc` (one call: admission, rights, deadline, task) over `grpc`, `connect`, or `page_handlers`.
"""
