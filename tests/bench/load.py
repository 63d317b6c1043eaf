"""Load from C tools, h2load for gRPC and etcd, wrk for HTTP/1.1; and from grpc-go.

h2load posts one file for ever, so different requests at the same time come from several processes of it, and all have
the same headers; those of `go/lookups.go` are fresh in every call. wrk runs a script in Lua, which sends as many
different requests as it likes.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from tests.bench.stats import Sample, percentile
from tests.bench.ticking import ticking
from tests.bench.usage import cpu_s

GRPC = ("content-type: application/grpc", "te: trailers")
_GRACE_S = 60.0
_HANDSHAKES_S = 2.0  # h2load waits for ever if its time is over before they are


class LoadFailed(Exception):
    """A load generator ended with an error, or requests failed; the message has its words."""


@dataclass(frozen=True, slots=True)
class Target:
    """A method of a server, the processes whose processor time it costs, and what every request brings."""

    address: str
    path: str
    pids: tuple[int, ...] = ()
    bearer: str = ""  # a token
    tls: bool = False

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.address}{self.path}"

    def headers(self) -> tuple[str, ...]:
        return (f"authorization: Bearer {self.bearer}",) if self.bearer else ()


@dataclass(frozen=True, slots=True)
class Shape:
    """How much load: `connections` with `streams` calls in flight on each, `rate` calls a second (0: all it takes).

    `window_bits`: HTTP/2's windows are two to this power of bytes; 30 is the load generator's own choice.
    """

    connections: int = 4
    streams: int = 16
    rate: float = 0.0
    window_bits: int = 30


def grpc_frame(message: bytes) -> bytes:
    """A message as it goes over the wire."""
    return b"\0" + len(message).to_bytes(4, "big") + message


async def grpc(
    target: Target, messages: Sequence[bytes], seconds: float, shape: Shape = Shape(), first: int = 0
) -> Sample:
    """One process of h2load for each message; `shape` is that of each. `first`: a sequence that goes up (`ticking.py`).

    Raises:
        LoadFailed: requests failed. (That a gRPC status is OK it does not see: callers compare `answer_bytes`.)
    """
    if target.tls:
        seconds = max(seconds, _HANDSHAKES_S)
    with tempfile.TemporaryDirectory() as directory:
        bodies = [Path(directory) / f"{i}.body" for i in range(len(messages))]
        for body, message in zip(bodies, messages, strict=True):
            body.write_bytes(grpc_frame(message))
        async with ticking(bodies, first) if first else nullcontext():
            before = cpu_s(target.pids)
            parts = await asyncio.gather(*(_h2load(target, body, seconds, shape) for body in bodies))
            spent_s = cpu_s(target.pids) - before
    done = sum(part.done for part in parts)
    if not done and seconds >= 1:
        raise LoadFailed(f"{target.path} answered nothing within {seconds:g} s")
    latencies = sorted(ms for part in parts for ms in part.latencies_ms)
    return _sample(done, seconds, latencies, spent_s, sum(part.data_bytes for part in parts))


@dataclass(frozen=True, slots=True)
class _Part:
    done: int
    data_bytes: int
    latencies_ms: list[float]


async def _h2load(target: Target, body: Path, seconds: float, shape: Shape) -> _Part:
    log = body.with_suffix(".log")
    paced = (f"--rps={shape.rate / shape.connections:g}",) if shape.rate else ()
    brought = [word for header in (*GRPC, *target.headers()) for word in ("-H", header)]
    words = await _run(
        "h2load",
        *(f"-w{shape.window_bits}", f"-W{shape.window_bits}"),
        *(f"-c{shape.connections}", f"-m{shape.streams}", "-t1", f"-D{round(seconds * 1000)}ms", *paced),
        *("-d", str(body), f"--log-file={log}", *brought, target.url),
        timeout_s=seconds + _GRACE_S,
    )
    done = _number(r"(\d+) succeeded", words)
    if _number(r"(\d+) failed", words):
        raise LoadFailed(f"requests to {target.path} failed: {words[-2000:]}")
    rows = (row.split("\t") for row in log.read_text().splitlines())
    return _Part(done, _number(r"\((\d+)\) data", words), [int(row[2]) / 1000 for row in rows if row[1] == "200"])


async def fresh(program: Path, target: Target, *, message: bytes, seconds: float, shape: Shape, tokens: Path) -> Sample:
    """`go/lookups.go`: each call has a deadline and a trace id of its own, and one of the tokens of a file."""
    before = cpu_s(target.pids)
    words = await _run(
        *(str(program), target.address, target.path, message.hex(), str(tokens)),
        *(str(shape.connections), str(shape.streams), str(seconds)),
        timeout_s=seconds + _GRACE_S,
    )
    spent_s, told = cpu_s(target.pids) - before, json.loads(words)
    done, p50, p90, p99, most = (float(told[name]) for name in ("done", "p50", "p90", "p99", "most"))
    return Sample(done / seconds, p50, p90, p99, most, spent_s / max(1.0, done) * 1e6)


async def http(
    target: Target,
    messages: Sequence[bytes],
    content_type: str,
    seconds: float,
    connections: int = 16,
    method: str = "POST",
) -> Sample:
    """wrk with one request in flight on each connection; the messages go in turn, over and over.

    Raises:
        LoadFailed: requests failed.
    """
    with tempfile.TemporaryDirectory() as directory:
        script = _script(Path(directory), messages, content_type, method)
        before = cpu_s(target.pids)
        words = await _run(
            *("wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "20s", "-s", str(script)),
            *(word for header in target.headers() for word in ("-H", header)),
            target.url,
            timeout_s=seconds + _GRACE_S,
        )
        spent_s = cpu_s(target.pids) - before
    found = re.search(r"^result (.+)$", words, re.MULTILINE)
    if found is None:
        raise LoadFailed(words[-2000:])
    done, failed, duration_us, read_bytes, p50, p90, p99, most = (float(word) for word in found[1].split())
    if failed:
        raise LoadFailed(f"{failed:.0f} of {done:.0f} requests to {target.path} failed: {words[-2000:]}")
    times = (p50 / 1000, p90 / 1000, p99 / 1000, most / 1000)
    answered = max(1.0, done)
    return Sample(done / duration_us * 1e6, *times, spent_s / answered * 1e6, read_bytes / answered)


def _script(directory: Path, messages: Sequence[bytes], content_type: str, method: str) -> Path:
    data, script = directory / "bodies", directory / "load.lua"
    data.write_bytes(b"".join(len(m).to_bytes(4, "big") + m for m in messages))
    script.write_text(_LUA.replace("@DATA@", str(data)).replace("@TYPE@", content_type).replace("@METHOD@", method))
    return script


_LUA = """
local requests, turn = {}, 0
wrk.headers["Content-Type"] = "@TYPE@"
function init(args)
  local file = io.open("@DATA@", "rb")
  local data = file:read("*a"); file:close()
  local at = 1
  while at <= #data do
    local a, b, c, d = data:byte(at, at + 3)
    local size = ((a * 256 + b) * 256 + c) * 256 + d
    local body = data:sub(at + 4, at + 3 + size)
    requests[#requests + 1] = wrk.format("@METHOD@", nil, wrk.headers, body)
    at = at + 4 + size
  end
end
function request()
  turn = turn % #requests + 1
  return requests[turn]
end
function done(summary, latency, rates)
  local e = summary.errors
  io.write(string.format("result %d %d %d %d %d %d %d %d\\n", summary.requests,
    e.connect + e.read + e.write + e.status + e.timeout, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max))
end
"""


def _sample(done: int, seconds: float, ordered_ms: list[float], spent_s: float, data_bytes: int) -> Sample:
    p50, p90, p99 = (percentile(ordered_ms, share) for share in (0.5, 0.9, 0.99))
    most = ordered_ms[-1] if ordered_ms else 0.0
    return Sample(done / seconds, p50, p90, p99, most, spent_s / max(1, done) * 1e6, data_bytes / max(1, done))


async def _run(*command: str, timeout_s: float) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(timeout_s):
            words = (await process.communicate())[0].decode(errors="replace")
    except TimeoutError:
        raise LoadFailed(f"{command[0]} did not end in time") from None
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise LoadFailed(f"{' '.join(command)} failed: {words[-2000:]}")
    return words


def _number(pattern: str, words: str) -> int:
    found = re.search(pattern, words)
    return int(found[1]) if found else 0
