"""The audit log: a line is whole or lost, full files are renamed, a failure ends when a line is written again."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hq.audit import Check
from hqapi.rules import UPLOAD
from serving.auth.audit import Audit, AuditLine, LogSink
from serving.auth.audit_chain import hash_of
from serving.auth.audit_file import FileSink
from serving.auth.gate import Authenticator
from serving.auth.policy import AccessPolicy
from serving.auth.watched_files import BadSecurity
from serving.calls.methods import Call, UnaryMethod, maybe_await
from serving.clock import ManualClock
from serving.errors import AuditUnavailable, PermissionDenied
from serving.rights.access import Access, Identity, ProofKind
from serving.telemetry.logs import LogStream, RepeatFilter

LINE = AuditLine("ann", "127.0.0.1:1", "S/M", "web-1", "allow", "upload", "OK", 7, "r-1")


class FailingSink:
    last, is_file = b"", False

    def __init__(self) -> None:
        self.is_full = False
        self.lines: list[str] = []

    def ready(self) -> bytes:
        return b""

    def write(self, line: str) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.lines.append(line)

    def close(self) -> None:
        pass


def test_a_line_holds_what_happened_and_when(tmp_path: Path) -> None:
    audit = Audit(FileSink(tmp_path / "audit"), ManualClock())
    assert audit.record(LINE)
    audit.close()
    told = json.loads((tmp_path / "audit").read_text())
    place = {"chain": audit.chain.name, "sequence": 1, "previous": ""}
    assert told == {**place, "time": "2023-11-14T22:13:20.000Z", **LINE._asdict()}


def test_callers_text_cannot_break_or_lengthen_an_audit_line(tmp_path: Path) -> None:
    audit = Audit(FileSink(tmp_path / "audit"), ManualClock())
    audit.record(LINE._replace(identity='x"\n{"identity":"root"}', key="k" * 10_000))
    audit.close()
    [line] = (tmp_path / "audit").read_text().splitlines()
    assert len(line) < 1_000
    assert json.loads(line)["identity"].startswith('x"\n')


async def test_an_item_of_a_batch_that_was_denied_is_recorded_as_denied() -> None:
    sink, clock = FailingSink(), ManualClock()
    gate = Authenticator(AccessPolicy(), None, None, Audit(sink, clock), clock)

    async def run(request: Any, call: Call) -> Any:
        call.note_write("web-1", 7)
        call.note_write("mail-1", outcome=PermissionDenied.reason)

    batch = UnaryMethod("S/Apply", bytes, bytes, run, UPLOAD)
    call = Call(access=Access(Identity("ann", ProofKind.TOKEN, 0), UPLOAD, {}))
    await maybe_await(gate.audited_run(batch)(None, call))
    told = [(one["key"], one["decision"]) for one in map(json.loads, sink.lines)]
    assert told == [("web-1", "allow"), ("mail-1", "deny")]


def test_full_files_are_renamed_and_the_oldest_given_up(tmp_path: Path) -> None:
    audit = Audit(FileSink(tmp_path / "audit", max_bytes=1_000, kept=2), ManualClock())
    for number in range(50):
        audit.record(LINE._replace(version=number))
    audit.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["audit", "audit.1", "audit.2"]
    newest = (tmp_path / "audit").read_text().splitlines()[-1]
    assert json.loads(newest)["version"] == 49
    assert all(path.stat().st_size <= 1_000 for path in tmp_path.iterdir())


def test_a_full_file_that_cannot_be_renamed_grows_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    audit = Audit(FileSink(tmp_path / "audit", max_bytes=1_000, kept=1), ManualClock())
    (tmp_path / "audit.1").mkdir()  # in its way
    assert all(audit.record(LINE) for _ in range(20))
    assert "cannot be renamed" in caplog.text
    (tmp_path / "audit.1").rmdir()
    assert all(audit.record(LINE) for _ in range(20))
    assert (tmp_path / "audit.1").is_file(), "it was tried again"
    audit.close()


def test_a_failure_lasts_until_a_line_is_written_again() -> None:
    sink = FailingSink()
    audit = Audit(sink, ManualClock())
    sink.is_full = True
    assert not audit.record(LINE)
    assert "No space left" in audit.fault
    with pytest.raises(AuditUnavailable, match="No space left"):
        audit.require(LINE)
    sink.is_full = False
    audit.require(LINE)
    assert (audit.fault, audit.lines, audit.lost) == ("", 2, 1), "what happened is written first; the order was refused"


@pytest.mark.parametrize("takes_it_away", [Path.unlink, lambda path: path.rename(path.with_suffix(".old"))])
def test_a_file_that_was_moved_or_deleted_is_created_again(
    tmp_path: Path, takes_it_away: Callable[[Path], object]
) -> None:
    path = tmp_path / "audit"
    audit = Audit(FileSink(path), ManualClock())
    audit.record(LINE)
    takes_it_away(path)
    audit.require(LINE._replace(version=8))
    audit.close()
    assert [json.loads(line)["version"] for line in path.read_text().splitlines()] == [8]


class FullStream(io.StringIO):
    is_full = True

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(28, "No space left on device")
        return super().write(text)


def test_an_order_is_refused_too_while_a_log_with_audit_lines_cannot_be_written() -> None:
    stream, audit = FullStream(), Audit(LogSink(), ManualClock())
    root, handler = logging.getLogger(), RepeatFilter(LogStream(stream), ManualClock().now)
    root.addHandler(handler)
    try:
        with pytest.raises(AuditUnavailable, match="No space left"):
            audit.require(LINE)
        stream.is_full = False
        audit.require(LINE)
    finally:
        root.removeHandler(handler)
    assert json.loads(stream.getvalue().splitlines()[0])["identity"] == "ann"


def test_a_log_that_cannot_be_opened_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(BadSecurity, match="--audit-log"):
        FileSink(tmp_path / "nowhere" / "audit")


def test_lines_are_written_to_the_log_whatever_its_level() -> None:
    audit, written = Audit(LogSink(), ManualClock()), io.StringIO()
    root, handler = logging.getLogger(), logging.StreamHandler(written)
    level = root.level
    root.setLevel(logging.ERROR)
    root.addHandler(handler)
    try:
        assert audit.record(LINE)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert json.loads(written.getvalue())["identity"] == "ann"


def test_only_their_owner_may_read_the_current_and_full_files_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        audit = Audit(FileSink(tmp_path / "audit", max_bytes=1_000), ManualClock())
        for _ in range(10):
            audit.record(LINE)
    finally:
        os.umask(before)
    audit.close()
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert len(modes) > 2
    assert set(modes.values()) == {0o600}


def test_a_file_that_others_may_read_is_restricted_with_a_log_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit"
    path.touch()
    path.chmod(0o644)
    FileSink(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert "had mode 644: now only its owner may read it" in caplog.text
    caplog.clear()
    FileSink(path).close()
    assert not caplog.records


def test_the_mode_of_a_device_is_left_alone() -> None:
    before = Path("/dev/full").stat().st_mode
    sink = FileSink(Path("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        sink.write("x")
    sink.close()
    assert Path("/dev/full").stat().st_mode == before


def test_two_processes_cannot_write_the_same_file(tmp_path: Path) -> None:
    first = FileSink(tmp_path / "audit")
    with pytest.raises(BadSecurity, match="another process is writing to it: give each process its own file"):
        FileSink(tmp_path / "audit")
    first.close()
    FileSink(tmp_path / "audit").close()


@pytest.mark.parametrize("only_grows", [False, True])
def test_a_partly_written_line_is_truncated_or_noted_in_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_grows: bool
) -> None:
    """The disk becomes full; with `only_grows`, the file cannot be truncated either."""

    def partly(descriptor: int, data: bytes) -> int:
        return real(descriptor, data[:40])

    def refused(descriptor: int, size: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    real, path = os.write, tmp_path / "audit"
    audit = Audit(FileSink(path), ManualClock())
    audit.require(LINE)
    if only_grows:
        monkeypatch.setattr(os, "ftruncate", refused)
    with monkeypatch.context() as full:
        full.setattr(os, "write", partly)
        for _ in range(2):
            assert not audit.record(LINE)
    for _ in range(2):
        audit.require(LINE)
    audit.close()
    found = Check()
    with path.open("rb") as file:
        found.file("audit", file)
    [span] = found.spans.values()
    assert (found.faults, span.lines, len(found.notes)) == ([], 5, int(only_grows))


def test_contents_of_a_replaced_audit_file_are_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    audit = Audit(FileSink(path), ManualClock())
    audit.require(LINE)
    path.unlink()
    path.write_bytes(b"half a li")
    audit.require(LINE)
    audit.close()
    first, second = path.read_bytes().splitlines()
    assert first == b"half a li"
    assert json.loads(second)["broken_off"] == hash_of(first)


def test_the_log_regularly_names_the_last_audit_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = ManualClock()
    audit = Audit(FileSink(tmp_path / "audit"), clock)
    clock.advance(1_000)
    for _ in range(3):
        audit.record(LINE)
        audit.tell(300)
    clock.advance(299)
    audit.tell(300)
    assert caplog.text.count("the audit log is at") == 1
    clock.advance(1)
    audit.tell(300)
    audit.tell(300)
    audit.close()
    assert caplog.text.count("the audit log is at") == 2
    assert f"the audit log is at 3:{audit.chain.last} of chain {audit.chain.name}" in caplog.text
    caplog.clear()
    Audit(FileSink(tmp_path / "audit"), clock).close()
    assert f"the audit log is at 3:{audit.chain.last}" in caplog.text, "a start says where it goes on"
