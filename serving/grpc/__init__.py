"""The old server for gRPC, behind --transport=grpcio, kept for one release: the current one is `serving.transport`."""
