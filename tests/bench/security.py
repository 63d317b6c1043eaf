"""What identity and rights cost: tokens on each call, and TLS on top, against the same replica without them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tests.bench import load, lookups
from tests.bench.bench import Bench, Side
from tests.bench.load import Target
from tests.bench.stand import SERVICE, stand
from tests.bench.stats import Sample
from tests.support.replicas import ReplicaProcess
from tests.support.secured import Secured
from tests.support.token_issuer import ISSUER

GROUP = "security"


async def run(bench: Bench) -> None:
    """The group `security`."""
    async with stand(bench.directory / GROUP, 23_000) as made:
        files = Secured(bench.directory / "secured")
        tokens = ("--jwks", str(files.issuer.jwks), "--issuer", ISSUER, "--policy", str(files.policy))
        plain = made.replicas[0]
        on = await made.replica(*tokens, "--audit-log", str(files.audit))
        token = files.issuer.token("reader/bench", good_for_s=7200)
        for lookup in (lookups.get(), lookups.of_service(100)):
            request = lookup.request.SerializeToString()
            answer = await made.ask(lookup.method, request)
            empty = await made.empty({"x": answer})
            path = f"{SERVICE}/{lookup.method}"
            with_token = replace(_target(on, path), bearer=token)
            sides: dict[str, Side] = {
                "hq": partial(load.grpc, with_token, [request]),
                "off": partial(load.grpc, _target(plain, path), [request]),
                "empty": partial(load.grpc, empty.target("x"), [request]),
            }
            await bench.compare(GROUP, f"{lookup.name}, gRPC, tokens", sides)
            web: dict[str, Side] = {
                "hq": partial(_http, replace(with_token, address=on.http), request),
                "off": partial(_http, replace(_target(plain, path), address=plain.http), request),
                "empty": partial(_http, empty.target("x", http=True), request),
            }
            await bench.compare(GROUP, f"{lookup.name}, proto, tokens", web)


def _target(replica: ReplicaProcess, path: str) -> Target:
    return Target(replica.grpc, path, (replica.pid,))


async def _http(target: Target, request: bytes, seconds: float) -> Sample:
    return await load.http(target, [request], "application/proto", seconds)
