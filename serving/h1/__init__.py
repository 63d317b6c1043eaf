"""HTTP/1.1 (RFC 9112) as a pure machine over the parser of httptools (llhttp): bytes in, events out."""
