"""Wall-E: notices broken hosts, asks leave, repairs them, and stops itself when too much is broken at once."""

import os

# Executors run programs. With gRPC's own handlers for fork a child crashes now and then before its program runs (a
# segfault in one of gRPC's threads, exit code -11), and a repair "fails" whose program never ran. Read when grpc loads.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
