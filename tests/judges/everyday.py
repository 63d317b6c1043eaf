"""Everyday tools against a real HQ: grpcurl, ghz, buf curl."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from tests.judges import tools
from tests.judges.processes import ROOT, must, run
from tests.judges.replica import SERVICE, Replica, plain, secured
from tests.judges.verdict import Verdict

_GET: Final = '{"id": "web-1"}'
_FIND: Final = '{"filter": {"serviceId": ["web"]}}'
_CALL_S: Final = 30.0
_WATCH_S: Final = "5"  # for the connection, too, and the first answer
_LOAD_S: Final = 90.0  # 20,000 calls on a machine that does something else, too
_NOT_FOUND: Final = 69  # grpcurl: 64 and the code
_HERE: Final = "HOST:PORT"
_PAGE: Final = ROOT / "docs" / "http.md"
_GRPCURL: Final = (
    ("list", SERVICE, (_HERE, "list")),
    ("list a service", "FindInstances", (_HERE, "list", SERVICE)),
    ("describe", "rpc GetInstance", (_HERE, "describe", SERVICE)),
    ("describe a message", "message GetInstanceRequest", (_HERE, "describe", "hq.v1.GetInstanceRequest")),
    ("health", "SERVING", (_HERE, "grpc.health.v1.Health/Check")),
    ("a call", "web-1", ("-d", _GET, _HERE, f"{SERVICE}/GetInstance")),
    ("a page", "web-3", ("-d", _FIND, _HERE, f"{SERVICE}/FindInstances")),
)


async def on_both(verdict: Verdict, directory: Path, judge: Callable[[Replica, str], Awaitable[None]]) -> None:
    """The same in plain text and with TLS; that HQ or the judge breaks down in one is a case that fails."""
    for name, serving in (("plain", plain), ("TLS", secured)):
        (directory / name).mkdir()
        try:
            async with serving(directory / name) as replica:
                await judge(replica, f"{name} ")
        except Exception as error:
            verdict.count(f"{name}: all of it", f"{type(error).__name__}: {error}")


async def grpcurl(directory: Path) -> Verdict:
    """Reflection, calls, an error, the health service, a stream."""
    path, version = await tools.go_tool("grpcurl")
    verdict = Verdict(version)

    async def judge(replica: Replica, prefix: str) -> None:
        secure = ("-cacert", str(replica.ca), "-H", f"authorization: {replica.authorization}")
        flags: tuple[str, ...] = secure if replica.ca else ("-plaintext",)
        for name, words, order in _GRPCURL:
            placed = [replica.grpc if word == _HERE else word for word in order]
            await verdict.case(prefix + name, _says(words, (path, *flags, *placed)))
        lost: tuple[str | Path, ...] = (path, *flags, "-d", '{"id": "web-9"}', replica.grpc, f"{SERVICE}/GetInstance")
        await verdict.case(prefix + "no such instance", _says("NotFound", lost, _NOT_FOUND))
        watch: tuple[str | Path, ...] = (
            path,
            *flags,
            "-max-time",
            _WATCH_S,
            "-d",
            "{}",
            replica.grpc,
            f"{SERVICE}/WatchInstances",
        )
        await verdict.case(prefix + "a watch", _says("web-1", watch, None))

    await on_both(verdict, directory, judge)
    return verdict


async def _says(words: str, order: Sequence[str | Path], code: int | None = 0) -> None:
    done = await run(order, _CALL_S)
    assert words in done.text, done
    assert code is None or done.code == code, done


async def ghz(directory: Path) -> Verdict:
    """Load with its defaults (reflection, 50 workers, one connection), and with more."""
    path, version = await tools.go_tool("ghz")
    verdict = Verdict(version)

    async def judge(replica: Replica, prefix: str) -> None:
        metadata = json.dumps({"authorization": replica.authorization})
        flags = (f"--cacert={replica.ca}", "-m", metadata) if replica.ca else ("--insecure",)
        for name, count, more in (
            ("defaults", 200, ()),
            ("20,000 calls", 20_000, ("-n", "20000")),
            ("10 connections", 5_000, ("-n", "5000", "--connections", "10")),
        ):
            order = (path, *flags, *more, "-O", "json", "--call", f"{SERVICE}.GetInstance", "-d", _GET, replica.grpc)
            await verdict.case(prefix + name, _all_good(order, count), _LOAD_S + 5)
        if replica.ca:
            going = _as_written(path, replica, directory)
            await verdict.case(prefix + "as docs/http.md has it", going, _LOAD_S + 5)

    await on_both(verdict, directory, judge)
    return verdict


async def _as_written(path: Path, replica: Replica, directory: Path) -> None:
    """The command of the page, with this CA, token and address."""
    assert replica.ca is not None
    (directory / "server-ca.crt").write_bytes(replica.ca.read_bytes())
    (directory / "token").write_text(replica.token)
    [command] = re.findall(r"^ghz (.*)$", _PAGE.read_text(), re.MULTILINE)
    words = f"'{path}' -O json {command}".replace("127.0.0.1:7071", replica.grpc)
    await _all_good(("sh", "-c", f"cd '{directory}' && exec {words}"), 200)


async def _all_good(order: Sequence[str | Path], count: int) -> None:
    told = json.loads(await must(order, _LOAD_S))
    assert told["statusCodeDistribution"] == {"OK": count}, (told["statusCodeDistribution"], told["errorDistribution"])


async def buf(directory: Path) -> Verdict:
    """`buf curl` with each of its protocols over both versions of HTTP."""
    path, version = await tools.buf()
    verdict = Verdict(version)

    async def judge(replica: Replica, prefix: str) -> None:
        h2 = () if replica.ca else ("--http2-prior-knowledge",)
        ways: list[tuple[str, tuple[str, ...]]] = [(each, h2) for each in ("grpc", "grpcweb", "connect")]
        if replica.ca is None:
            ways += [("grpcweb", ()), ("connect", ())]
        for protocol, flags in ways:
            over = "HTTP/2" if flags or replica.ca else "HTTP/1.1"
            await _buf(verdict, f"{prefix}{protocol} {over} ", replica, (path, "curl", "--protocol", protocol, *flags))

    await on_both(verdict, directory, judge)
    return verdict


async def _buf(verdict: Verdict, prefix: str, replica: Replica, order: Sequence[str | Path]) -> None:
    words = f"authorization: {replica.authorization}"
    secure = ("--cacert", str(replica.ca), "-H", words, "--reflect-header", words) if replica.ca else ()
    base = f"{'https' if replica.ca else 'http'}://{replica.grpc if 'grpc' in order else replica.http}/{SERVICE}"
    # Reflection is a bidirectional stream, which needs HTTP/2: over HTTP/1.1 buf reads the files.
    by_files = ("--schema", str(Path(__file__).resolve().parents[2] / "proto"))
    schema = () if replica.ca or "--http2-prior-knowledge" in order else by_files
    for name, words, call, request, code in (
        ("a call", "web-1", "GetInstance", _GET, 0),
        ("a page", "web-3", "FindInstances", _FIND, 0),
        ("no such instance", "not_found", "GetInstance", '{"id": "web-9"}', None),
    ):
        one = (*order, *secure, *schema, "-d", request, f"{base}/{call}")
        await verdict.case(prefix + name, _says(words, one, code))
    watch = (*order, *secure, *schema, "--timeout", f"{_WATCH_S}s", "-d", "{}", f"{base}/WatchInstances")
    await verdict.case(prefix + "a watch", _says("web-1", watch, None))
