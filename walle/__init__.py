"""Wall-E: detects broken hosts, requests leave, repairs them, and stops itself when too much is broken at once."""

import os

# Executors run programs. With gRPC's own fork handlers a child occasionally crashes before its program runs (a
# segfault in one of gRPC's threads, exit code -11), and the repair "fails" although it never ran. Read when grpc loads.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
