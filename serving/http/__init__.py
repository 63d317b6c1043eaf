"""The old server for HTTP, behind --transport=grpcio, kept for one release: the current one is `serving.transport`."""
