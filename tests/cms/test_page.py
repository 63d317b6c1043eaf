"""docs/cms.md, typed as it stands there: its commands in order, in one shell, with the files that it says to write."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from cms.sites import parse_sites
from tests.judges.processes import ROOT, environment
from tests.rig.controller_faults import Process

PAGE: Final = ROOT / "docs" / "cms.md"
_STARTED: Final = ("hq dev", "cms dev")
_ANSWER: Final = "$ hqctl disruptions why"  # of a real day
_ANY: Final = "any"
_WITHIN_S: Final = 600.0
# An instance counts again with its next report: until then the same question is answered otherwise.
_SHELL: Final = r"""
set -m
curl() {
    local code
    code=$(command curl -sS -o /dev/null -w '%{http_code}' "$@")
    case $code in 2*) ;; *) return $((code - 400)) ;; esac
}
expect() {
    for _ in $(seq 60); do
        eval "$2"; code=$?
        { [ "$1" = any ] || [ $code = "$1" ]; } && break
        sleep 0.5
    done
    echo "@@ $code"
}
"""


class Block(NamedTuple):
    """A fenced block; `file`: the last file that the text before it says to write."""

    kind: str
    text: str
    file: str


class Typed(NamedTuple):
    """A command; `code`: that it ends with, as the page says."""

    command: str
    code: str


def blocks() -> Iterator[Block]:
    parts = re.split(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    for before, kind, text in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        named = re.findall(r"[Ww]rite[^.:]*?\n?`(\w+\.yaml)`|write it into `(\w+\.yaml)`", before)
        yield Block(kind, text, "".join(named[-1]) if named else "")


def commands(text: str) -> Iterator[Typed]:
    """The commands of a block, those of several lines as one."""
    command, code = "", "0"
    for line in text.splitlines():
        if line.startswith("#"):
            code = "9" if "(409)" in line else code
            continue
        bare, _, comment = line.partition(" # ")
        command = f"{command}\n{bare}" if command else bare
        if command.count("'") % 2 == 0 and command.strip():
            if said := re.search(r"exit code (\d)( while)?", comment):
                code = _ANY if said[2] else said[1]
            yield Typed(command.strip(), code)
            command, code = "", "0"


def script(port: str) -> tuple[str, list[Typed]]:
    """What a shell runs, and the commands in it."""
    lines, typed = [_SHELL], []
    for block in blocks():
        if block.kind == "yaml" and block.file:
            lines.append(f"cat >$TMPDIR/{block.file} <<'YAML'\n{block.text}YAML")
        elif block.kind == "" and not block.text.startswith(_ANSWER):
            for one in commands(block.text):
                if not one.command.startswith(_STARTED):
                    typed.append(one)
                    here = re.sub(r"\b(\w+\.(?:yaml|txt))\b(?<!web.yaml)", r"$TMPDIR/\1", one.command)
                    here = here.replace("localhost:7280", f"127.0.0.1:{port}")
                    lines.append(f"expect {one.code} {_quote(here)}")
    return "\n".join(lines), typed


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.long
@pytest.mark.timeout(700)
async def test_the_page_is_run_as_written(tmp_path: Path) -> None:
    where = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
    async with AsyncExitStack() as stack:
        hq = Process(("hq.main", "dev", "--store", "memory", "--report-interval", "2s", *where), tmp_path / "hq.log")
        stack.push_async_callback(hq.kill)
        await hq.start()
        words = ("cms.main", "dev", "--store", "memory", "--location", f"default={hq.grpc}", *where)
        cms = Process(words, tmp_path / "cms.log")
        stack.push_async_callback(cms.kill)
        await cms.start()
        text, typed = script(cms.http.rpartition(":")[2])
        found = environment() | {"HQ_SERVER": hq.grpc, "HQ_CMS": cms.grpc, "TMPDIR": str(tmp_path)}
        found["PATH"] = f"{Path(sys.executable).parent}:{found.get('PATH', os.defpath)}"
        log = tmp_path / "shell.log"
        with log.open("wb") as out:
            shell = await asyncio.create_subprocess_exec(
                *("bash", "-c", text), cwd=ROOT, env=found, stdout=out, stderr=out, start_new_session=True
            )
        try:
            await asyncio.wait_for(shell.wait(), _WITHIN_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            printed = log.read_text()
    codes = re.findall(r"^@@ (\d+)$", printed, re.MULTILINE)
    ended = [Typed(one.command, one.code if one.code == _ANY else code) for one, code in zip(typed, codes, strict=True)]
    assert ended == typed, printed
    for told in (
        "(reboot) holds 1",
        "granted",
        "max_unavailable 10%, brief 50% within 15m",
        "task fan-b is urgent",
        "fire in ams-1",
    ):
        assert told in printed, told


def test_the_page_has_a_command_for_each_capability() -> None:
    typed = "\n".join(one.command for one in script("7280")[1])
    for words in (
        *(
            "budget apply",
            "budget list",
            "windows apply",
            "windows list",
            "windows delete",
            "--dry-run",
            "--provisional",
        ),
        *("disruptions confirm", "disruptions done", "disruptions expedite", "disruptions extend", "disruptions end"),
        *("disruptions plan", "disruptions freeze", "disruptions unfreeze", "disruptions status"),
        *("-X POST", "-X DELETE", "/confirm", "/v1/pre-reboot", "/v1/steady-state"),
    ):
        assert words in typed, words


def test_the_file_of_sites_is_read() -> None:
    (text,) = (block.text for block in blocks() if block.text.startswith("hosts:"))
    limits = parse_sites(text, 0)
    assert limits.sites["node-1"].project == "web-hosts"
    assert limits.by_name["one-rack-per-dc"].most == 1
