"""Messages of nanny.v1: generated, beside their .proto files."""
