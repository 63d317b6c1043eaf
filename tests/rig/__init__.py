"""The instrument behind `make faults`: an installation of real processes, faults by a seed, and a history of all of it.

`python -m tests.rig --help` lists what it can do. What a history must satisfy is decided by tests/checker.
"""
