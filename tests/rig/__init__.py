"""The instrument behind `make faults`: an installation of real processes, faults by a seed, and a history of all of it.

`python -m tests.rig --help` lists what it can do. What a history must satisfy is decided by tests/checker.
"""

import os

# The rig starts processes all the time; gRPC would log a line for each.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
