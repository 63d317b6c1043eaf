"""The judges of `serving/transport/`: clients and suites that others wrote, unmodified, installed by package name.

`make judges` runs all that are on this machine, two at a time, and says of the others how to get them
(`python -m tests.judges --install`, into $HQ_JUDGES or ~/.cache/hq-judges). `--only NAME` runs one, `--list`
names them.

Read downward: `judges` (all of them) → `suites` (h2spec, connectconformance), `interop` (gRPC's own clients), `curl`,
`everyday`, `prometheus`, `javascript` (tools and libraries against a real HQ, `replica`) → `tools` (which version, and
where it comes from) → `processes`. The servers under test are the programs `interop_server` and `conformance_server`;
both stand on `listening`, which makes a server of the methods in `interop_service` and `conformance_service`.
"""
