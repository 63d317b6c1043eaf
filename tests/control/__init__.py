"""Controllers on the kit under faults: `printers` (the controller), `story` (what happened) and `judge` (what must
hold), `simulated` (one loop, virtual time) and `python -m tests.control` (processes, a real etcd, real faults).
"""
