"""What every server stands on: transport, the table of methods, the error tree, limits, security, time.

Servers use it that may not know each other, such as `hq` and `federated`. The current transport is `transport/`, and
`grpc/` and `http/` are the old servers behind --transport=grpcio, kept for one release; all serve one table (`calls/`).
"""
