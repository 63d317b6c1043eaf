"""Messages as bytes: protobuf, JSON, gzip."""
