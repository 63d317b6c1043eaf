"""curl against a real HQ: HTTP/1.1, HTTP/2 by prior knowledge, TLS with both, and what shells do with them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from tests.judges.everyday import on_both
from tests.judges.processes import Finished, run
from tests.judges.replica import INSTANCES, SERVICE, Replica
from tests.judges.tools import on_path
from tests.judges.verdict import Verdict

_JSON: Final = ("-H", "content-type: application/json")
_TOLD: Final = "\n%{http_version} %{http_code} %{num_connects}\n"
_VERSIONS: Final = {"--http1.1": "1.1", "--http2-prior-knowledge": "2", "--http2": "2"}
_OLD: Final = re.compile(r"curl 7\.")
_AT_MOST_S: Final = 35.0
_LARGE_BYTES: Final = 2_000_000


async def curl(directory: Path) -> Verdict:
    """Pages, calls, streams, uploads; each over both versions of HTTP, in plain text and with TLS."""
    path, version = await on_path("curl", "curl")
    verdict = Verdict(version)

    async def judge(replica: Replica, prefix: str) -> None:
        for flag in ("--http1.1", "--http2" if replica.ca else "--http2-prior-knowledge"):
            await _Curl(path, replica, flag, directory).judge(verdict, f"{prefix}{flag} ")
        if not replica.ca:
            await verdict.case("an offered upgrade to h2c is not taken", _no_upgrade(path, replica, directory))

    await on_both(verdict, directory, judge)
    return verdict


async def _no_upgrade(path: Path, replica: Replica, directory: Path) -> None:
    done = await _Curl(path, replica, "--http2", directory).run("/livez")
    assert done.out.split()[-3:-1] == ["1.1", "200"], done


class _Curl:
    """curl with one version of HTTP, against one replica."""

    def __init__(self, path: Path, replica: Replica, flag: str, directory: Path) -> None:
        secure = ("--cacert", str(replica.ca), "-H", f"authorization: {replica.authorization}") if replica.ca else ()
        self._order = (path, "-sS", flag, "--max-time", "30", "-w", _TOLD, *secure)
        self._flag, self._version = flag, _VERSIONS[flag]
        self._base, self._directory = replica.base, directory

    async def judge(self, verdict: Verdict, prefix: str) -> None:
        await verdict.case(prefix + "GET /livez", self._says("/livez", "ok"))
        await verdict.case(prefix + "GET /metrics", self._says("/metrics", "hq_"))
        await verdict.case(prefix + "HEAD /readyz", self._says("/readyz", "content-length", "--head"))
        await verdict.case(prefix + "compressed", self._finds("--compressed"))
        await verdict.case(prefix + "a call", self._finds())
        if self._version == "1.1":  # HTTP/2 has no chunks
            await verdict.case(prefix + "a chunked call", self._finds("-H", "transfer-encoding: chunked"))
        await verdict.case(prefix + "no such instance", self._not_found())
        await verdict.case(prefix + "no such page", self._status("/nothing", "404"))
        await verdict.case(prefix + "100-continue and a large body", self._large())
        if self._flag == "--http2-prior-knowledge" and _OLD.match(verdict.version):
            verdict.left_out.append(f"{prefix}two requests on one connection: curl's own bug 10634, mended in 8.0")
        else:
            await verdict.case(prefix + "two requests on one connection", self._twice())
            await verdict.case(prefix + "fifty at once", self._many())
        await verdict.case(prefix + "a watch", self._watch())

    async def run(self, path: str, *flags: str) -> Finished:
        return await run((*self._order, *flags, self._base + path), _AT_MOST_S)

    async def _body(self, path: str, *flags: str, status: str = "200") -> str:
        done = await self.run(path, *flags)
        body, _, told = done.out.removesuffix("\n").rpartition("\n")
        assert done.code == 0, done
        assert told.split()[:2] == [self._version, status], (told, body, done.err)
        return body

    async def _call(self, name: str, request: Any, *flags: str, status: str = "200") -> Any:
        path = f"/{SERVICE}/{name}"
        return json.loads(await self._body(path, *_JSON, "-d", json.dumps(request), *flags, status=status))

    async def _says(self, path: str, words: str, *flags: str) -> None:
        body = await self._body(path, *flags)
        assert words in body, body[:300]

    async def _status(self, path: str, status: str) -> None:
        await self._body(path, status=status)

    async def _finds(self, *flags: str) -> None:
        answer = await self._call("FindInstances", {"filter": {"serviceId": ["web"]}}, *flags)
        assert [each["meta"]["id"] for each in answer["instances"]] == [*INSTANCES], answer

    async def _not_found(self) -> None:
        answer = await self._call("GetInstance", {"id": "web-9"}, status="404")
        assert answer["code"] == "not_found", answer

    async def _large(self) -> None:
        """Refused for what is in it, not for how it came."""
        body = self._directory / "large.json"
        body.write_text(json.dumps({"id": "x" * _LARGE_BYTES}))
        flags = (*_JSON, "-H", "expect: 100-continue", "--data-binary", f"@{body}")
        answer = json.loads(await self._body(f"/{SERVICE}/GetInstance", *flags, status="400"))
        assert answer["code"] == "invalid_argument", str(answer)[:300]

    async def _twice(self) -> None:
        done = await run((*self._order, self._base + "/livez", self._base + "/livez"), _AT_MOST_S)
        assert [line.split()[-1] for line in done.out.splitlines() if " 200 " in line] == ["1", "0"], done

    async def _many(self) -> None:
        urls = [self._base + "/livez"] * 50
        done = await run((*self._order, "--parallel", "--parallel-max", "50", *urls), _AT_MOST_S)
        assert done.out.count(f"{self._version} 200") == len(urls), done

    async def _watch(self) -> None:
        """The stream stays open until curl's patience ends (28), and has said something by then."""
        body = self._directory / "watch.bin"
        body.write_bytes(b"\0\0\0\0\2{}")
        flags = ("-N", "--max-time", "5", "-H", "content-type: application/connect+json", "--data-binary", f"@{body}")
        done = await self.run(f"/{SERVICE}/WatchInstances", *flags)
        assert done.code == 28, done
        assert "web-1" in done.out, done
