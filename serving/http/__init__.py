"""HTTP: HTTP/1 over uvicorn, the Connect protocol, and plain pages."""
