"""The two suites that come whole: h2spec for HTTP/2, connectconformance for Connect, gRPC and gRPC-Web."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final

from tests.judges.processes import interop_server, run
from tests.judges.tools import go_module, go_tool
from tests.judges.verdict import Verdict
from tests.support.certificates import Authority

_HERE: Final = Path(__file__).parent
_H2SPEC_S: Final = 420.0
_CONFORMANCE_S: Final = 240.0  # it takes 20
_PATH: Final = "/readyz"  # its answer has more than the four bytes that the cases about windows take apart

# Cases that fail and may: each with its reason.
_ARGUED: Final = {
    "http2/3.5 Sends invalid connection preface": "the port speaks HTTP/1.1, too, which answers nonsense with 400",
}

_TOTAL: Final = re.compile(r"^Total cases: (\d+)", re.MULTILINE)
_PASSED: Final = re.compile(r"^(\d+) passed, (\d+) failed", re.MULTILINE)
_NOT_RUN: Final = re.compile(r"^Another \d+ could not be run.*", re.MULTILINE)
_FAILED: Final = re.compile(r"^FAILED: (.*?)(?=^(?:FAILED|INFO): |^Total cases: |\Z)", re.MULTILINE | re.DOTALL)


async def h2spec(directory: Path) -> Verdict:
    """Every case, the strict ones, too, over plain text."""
    return await _h2spec(directory, (), ())


async def h2spec_tls(directory: Path) -> Verdict:
    """Every case over TLS."""
    own = Authority(directory).issue("server")
    return await _h2spec(directory, ("--cert", str(own.cert), "--key", str(own.key)), ("--tls", "--insecure"))


async def _h2spec(directory: Path, server_flags: tuple[str, ...], flags: tuple[str, ...]) -> Verdict:
    path, version = await go_tool("h2spec")
    verdict, report = Verdict(version), directory / "h2spec.xml"
    async with interop_server(directory, *server_flags) as port:
        order = (path, "--strict", "--host", "127.0.0.1", "--port", str(port), "--path", _PATH, "--timeout", "10")
        said = await run((*order, "--junit-report", report, *flags), _H2SPEC_S)
    if not report.exists():
        verdict.count("h2spec", f"it wrote no report: {said.text}")
        return verdict
    for case in ET.parse(report).iter("testcase"):
        _count(verdict, case)
    return verdict


def _count(verdict: Verdict, case: ET.Element) -> None:
    name = f"{case.get('package')} {case.get('classname')}"
    fault = case.find("failure")
    fault = fault if fault is not None else case.find("error")
    if case.find("skipped") is not None:
        verdict.left_out.append(f"{name}: h2spec skipped it")
    elif fault is None:
        verdict.count(name)
    elif name in _ARGUED:
        verdict.left_out.append(f"{name}: {_ARGUED[name]}")
    else:
        verdict.count(name, fault.text or "it failed")


async def conformance(directory: Path) -> Verdict:
    """All cases that fit what conformance.yaml claims; a case of known_failing.txt that passes is a failure, too."""
    path, version = await go_tool("connectconformance")
    protos = await go_module("connectconformance") / "proto"
    order = (path, "--mode", "server", "--conf", _HERE / "conformance.yaml", "--max-servers", "2", "--parallel", "4")
    known = ("--known-failing", f"@{_HERE / 'known_failing.txt'}")
    program = (sys.executable, "-m", "tests.judges.conformance_server", protos)
    said = await run((*order, *known, "--", *program), _CONFORMANCE_S)
    (directory / "conformance.log").write_text(said.text)
    verdict, passed = Verdict(version), _PASSED.search(said.text)
    for found in _FAILED.findall(said.text):
        name, _, why = found.partition("\n")
        verdict.count(name.rstrip(":"), why)
    if passed is None or _TOTAL.search(said.text) is None:
        verdict.count("connectconformance", f"it came to no end: {said.text[-1_500:]}")
    else:
        verdict.passed = int(passed[1])
        if not_run := _NOT_RUN.search(said.text):
            verdict.count("connectconformance", not_run[0])
        told = len(verdict.failed)
        if int(passed[2]) > told or (said.code and not told):
            verdict.count("connectconformance", f"exit code {said.code}, {passed[0]}: {said.text[-1_500:]}")
    return verdict
