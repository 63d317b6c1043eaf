"""What every server is built on: transport, the table of methods, the error tree, limits, security, time.

Servers use it that must not know each other: `hq` and `federated`, say. The current transport is `transport/`, and
`grpc/` and `http/` are the old servers behind --transport=grpcio, kept for one release; all serve one table (`calls/`).
"""

from serving import compiled

compiled.use()
