"""gRPC's interoperability cases, put to our server by gRPC's official clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.judges.interop_python import Cases, version
from tests.judges.interop_service import learn
from tests.judges.processes import interop_server, must
from tests.judges.tools import go_tool, java, node
from tests.judges.verdict import Verdict
from tests.support.certificates import Authority

_EVERYWHERE: Final = (
    *("empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream"),
    *("timeout_on_sleeping_server", "cancel_after_begin", "cancel_after_first_response"),
    *("status_code_and_message", "special_status_message", "custom_metadata"),
    *("unimplemented_method", "unimplemented_service"),
)
_GO: Final = (*_EVERYWHERE, "pick_first_unary", "rpc_soak", "channel_soak")
_JAVA: Final = (
    *_EVERYWHERE,
    *("client_compressed_unary_noprobe", "client_compressed_streaming_noprobe"),
    *("server_compressed_unary", "server_compressed_streaming", "rpc_soak"),
)
_PROBES: Final = "the method would have to know whether a message came compressed; the table hides it"
# Not by name: a look-up of localhost can take Go five seconds.
_HOSTS: Final = ("--server_host=127.0.0.1", "--server_host_override=localhost")
_CASE_S: Final = 60.0
# A call of a soak test may take as long as a busy machine needs; without these flags a second.
_SOAK: Final = ("--soak_per_iteration_max_acceptable_latency_ms=20000", "--soak_overall_timeout_seconds=50")


class Site(NamedTuple):
    """Where the server under test is; `ca` None: it speaks plain text."""

    port: int
    ca: Path | None


@asynccontextmanager
async def site(directory: Path, *, tls: bool) -> AsyncIterator[Site]:
    if not tls:
        async with interop_server(directory) as port:
            yield Site(port, None)
        return
    authority = Authority(directory)
    own = authority.issue("server")
    async with interop_server(directory, "--cert", str(own.cert), "--key", str(own.key)) as port:
        yield Site(port, authority.cert)


async def go(directory: Path) -> Verdict:
    """grpc-go's own client."""
    path, told = await go_tool("interop")
    async with site(directory, tls=False) as at:
        return await _each(Verdict(told), (path, *_HOSTS, f"--server_port={at.port}"), _GO)


async def go_tls(directory: Path) -> Verdict:
    """grpc-go's own client over TLS."""
    path, told = await go_tool("interop")
    async with site(directory, tls=True) as at:
        tls = ("--use_tls", "--use_test_ca", f"--ca_file={at.ca}")
        return await _each(Verdict(told), (path, *_HOSTS, f"--server_port={at.port}", *tls), _GO)


async def java_netty(directory: Path) -> Verdict:
    """grpc-java's own client on Netty; it trusts only an authority of its own, so there is no TLS."""
    return await _java(directory)


async def java_okhttp(directory: Path) -> Verdict:
    """The same on OkHttp, as on Android."""
    return await _java(directory, "--use_okhttp=true")


async def _java(directory: Path, *flags: str) -> Verdict:
    jars, told = await java()
    program = ("java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", "io.grpc.testing.integration.TestServiceClient")
    verdict = Verdict(told)
    verdict.left_out += [f"{case}: {_PROBES}" for case in ("client_compressed_unary", "client_compressed_streaming")]
    async with site(directory, tls=False) as at:
        order = (*program, *_HOSTS, f"--server_port={at.port}", "--use_tls=false", *flags)
        return await _each(verdict, order, _JAVA)


async def _each(verdict: Verdict, order: Sequence[str | Path], cases: Sequence[str]) -> Verdict:
    for case in cases:
        more = _SOAK if case.endswith("_soak") else ()
        await verdict.case(case, must((*order, *more, f"--test_case={case}"), _CASE_S), _CASE_S + 5)
    return verdict


async def node_js(directory: Path) -> Verdict:
    """@grpc/grpc-js, its cases written by hand in node/interop.mjs, over plain text and TLS."""
    folder, told = await node("@grpc/grpc-js")
    verdict = Verdict(told)
    for tls in (False, True):
        async with site(directory, tls=tls) as at:
            proto = Path(__file__).with_name("testing.proto")
            said = await must(("node", folder / "interop.mjs", proto, str(at.port), at.ca or ""), _CASE_S)
        take_over(verdict, said, "TLS " if tls else "")
    return verdict


def take_over(verdict: Verdict, said: str, prefix: str = "") -> None:
    """Count the cases of a Node program: lines of `ok NAME` and `not ok NAME: why`, the last one `end`."""
    lines = [line for line in said.splitlines() if line.startswith(("ok ", "not ok "))]
    for line in lines:
        name, _, why = line.removeprefix("not ").removeprefix("ok ").partition(": ")
        verdict.count(prefix + name, (why or "it failed") if line.startswith("not") else "")
    if not said.rstrip().endswith("end"):
        verdict.count(f"{prefix}all cases", f"the program came to no end: {said[-500:]}")


async def python(directory: Path) -> Verdict:
    """grpcio, its cases written by hand, over plain text and TLS, with and without compression."""
    learn()
    verdict = Verdict(version())
    verdict.left_out += [f"{case}: {_PROBES}" for case in ("client_compressed_unary", "client_compressed_streaming")]
    for tls in (False, True):
        async with site(directory, tls=tls) as at:
            await Cases(at.port, at.ca).judge(verdict, "TLS " if tls else "")
    return verdict
