"""The instrument behind `make bench`: HQ, an empty handler of the same stack and raw etcd, side by side in one run.

Load comes from C tools (h2load, wrk). What counts is ratios: each case runs in interleaved rounds, and what is told is
the median and the spread. `python -m tests.bench --help` lists the cases.
"""
