"""HTTP/2 (RFC 9113) and HPACK (RFC 7541) as pure machines: bytes in, events out; no I/O, no clock."""
