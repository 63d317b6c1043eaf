"""The base of every server: transport, the table of methods, the error tree, limits, security, time.

Servers use it that must not know each other: `hq` and `federated`, say. `transport/` serves their tables of methods
(`calls/`) in every protocol.
"""

import os

from serving import compiled

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # before gRPC is imported, as in `hqclient` (decision 217)
compiled.use()
