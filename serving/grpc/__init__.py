"""gRPC: the calls, and gRPC's own services for health and reflection."""
