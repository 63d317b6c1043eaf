"""`hq audit verify` finds every change of an audit log, and reports none where there was none."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hq.main import cli
from serving.auth.audit import Audit, AuditLine
from serving.auth.audit_chain import hash_of
from serving.auth.audit_file import FileSink
from serving.clock import ManualClock

LINE = AuditLine("ann", "127.0.0.1:1", "S/M", "web-1", "allow", "upload", "OK", 7, "r-1")
Lines = list[bytes]


def written(path: Path, count: int, max_bytes: int = 1 << 20) -> str:
    """Append `count` lines, as one process would; return the mark of the last one, for --expect."""
    audit = Audit(FileSink(path, max_bytes=max_bytes, kept=100), ManualClock())
    for number in range(count):
        assert audit.record(LINE._replace(version=number))
    audit.close()
    return audit.chain.mark


def verify(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["audit", "verify", *map(str, words)])


def changed(path: Path, change: Callable[[Lines], Lines]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def test_an_untouched_log_is_intact(tmp_path: Path) -> None:
    mark = written(tmp_path / "audit", 20)
    found = verify(tmp_path / "audit")
    assert found.exit_code == 0, found.output
    assert "20 lines, 1 to 20: intact" in found.output
    assert f"--expect {mark}" in found.output


def test_a_restart_goes_on_with_the_chain(tmp_path: Path) -> None:
    marks = [written(tmp_path / "audit", 5) for _ in range(3)]
    found = verify(tmp_path / "audit", *(word for mark in marks for word in ("--expect", mark)))
    assert found.exit_code == 0, found.output
    assert "15 lines, 1 to 15" in found.output


def test_the_first_line_of_a_new_file_names_the_last_of_the_one_before(tmp_path: Path) -> None:
    for _ in range(3):
        written(tmp_path / "audit", 20, max_bytes=2_000)
    files = [*tmp_path.iterdir()]
    assert len(files) > 5
    first = json.loads((tmp_path / "audit").read_text().splitlines()[0])
    assert first["previous"] == hash_of((tmp_path / "audit.1").read_bytes().splitlines()[-1])
    random.Random(1).shuffle(files)
    found = verify(*files)
    assert (found.exit_code, "60 lines, 1 to 60" in found.output) == (0, True), found.output
    found = verify(*(path for path in files if path.name != "audit.2"))
    assert (found.exit_code, "are missing before this one" in found.output) == (1, True), found.output


def test_a_start_after_the_full_file_was_renamed_continues_the_chain(tmp_path: Path) -> None:
    written(tmp_path / "audit", 5)
    (tmp_path / "audit").rename(tmp_path / "audit.1")
    written(tmp_path / "audit", 5)
    found = verify(tmp_path / "audit", tmp_path / "audit.1")
    assert (found.exit_code, "10 lines, 1 to 10" in found.output) == (0, True), found.output


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda lines: [*lines[:4], lines[4].replace(b"allow", b"deny "), *lines[5:]],
            "line 5, the one before, has changed",
        ),
        (lambda lines: [*lines[:4], lines[4].replace(b'"', b"'"), *lines[5:]], "audit:5: not a valid line"),
        (lambda lines: [*lines[:4], lines[4][:30] + b"\n", *lines[5:]], "audit:5: not a valid line"),
        (lambda lines: [*lines[:4], b"\n", *lines[4:]], "audit:5: not a valid line"),
        (lambda lines: [*lines[:4], *lines[5:]], "audit:5: line 5 is missing before this one"),
        (lambda lines: [*lines[:4], *lines[8:]], "audit:5: lines 5 to 8 are missing before this one"),
        (lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]], "line 5 comes after line 6: it was moved"),
        (lambda lines: [*lines[:5], *lines[4:]], "line 5 comes after line 5: it was moved or duplicated"),
        (lambda lines: [*lines[:4], b'{"sequence": 5}\n', *lines[5:]], "audit:5: not a valid line"),
        (lambda lines: [lines[0].replace(b'"previous":""', b'"previous":"x"'), *lines[1:]], "only line 1"),
        (lambda lines: [line.replace(b"\n", b"\r\n") for line in lines], "line 1, the one before, has changed"),
    ],
)
def test_what_was_changed_is_found_and_named(tmp_path: Path, change: Callable[[Lines], Lines], words: str) -> None:
    written(tmp_path / "audit", 20)
    changed(tmp_path / "audit", change)
    found = verify(tmp_path / "audit")
    assert found.exit_code == 1
    assert words in found.output, found.output


def test_any_single_change_of_a_byte_before_the_last_line_is_found(tmp_path: Path) -> None:
    path, rng = tmp_path / "audit", random.Random(24)
    written(path, 6)
    whole = path.read_bytes()
    last = len(b"".join(whole.splitlines(keepends=True)[:-1]))
    for _ in range(100):
        at, other = rng.randrange(last), rng.randrange(1, 256)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ other]) + whole[at + 1 :])
        assert verify(path).exit_code == 1, at


def test_a_truncated_log_is_detected_if_an_expected_line_is_given(tmp_path: Path) -> None:
    mark = written(tmp_path / "audit", 20)
    changed(tmp_path / "audit", lambda lines: lines[:-1])
    assert verify(tmp_path / "audit").exit_code == 0, "nothing in the file says that there was more"
    for expected in (mark, "20"):
        found = verify("--expect", expected, tmp_path / "audit")
        assert (found.exit_code, "is missing: lines were removed" in found.output) == (1, True)


def test_a_log_written_anew_is_found_by_an_expected_line(tmp_path: Path) -> None:
    mark = written(tmp_path / "audit", 20)
    (tmp_path / "audit").unlink()
    written(tmp_path / "audit", 20)
    assert verify("--expect", mark, tmp_path / "audit").exit_code == 1


def test_a_later_audit_file_continues_from_the_last_verified_line(tmp_path: Path) -> None:
    """So the file of each day can be checked alone."""
    mark = written(tmp_path / "audit", 20)
    (tmp_path / "audit").rename(tmp_path / "audit.1")
    written(tmp_path / "audit", 5)
    found = verify("--expect", mark, tmp_path / "audit")
    assert found.exit_code == 0, found.output
    assert "what came before line 21 is not in these files" in found.output


def test_files_of_several_workers_are_chains_of_their_own(tmp_path: Path) -> None:
    for worker in range(3):
        written(tmp_path / f"audit.worker-{worker}", 5 + worker)
    found = verify(*tmp_path.iterdir())
    assert found.exit_code == 0
    assert sorted(map(int, re.findall(r": (\d+) lines", found.output))) == [5, 6, 7]


@pytest.mark.parametrize("left_bytes", [1, 30, 200])
def test_a_line_cut_short_by_a_crash_is_not_mistaken_for_an_edit(tmp_path: Path, left_bytes: int) -> None:
    path = tmp_path / "audit"
    written(path, 5)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines()[-1][:left_bytes])
    found = verify(path)
    assert (found.exit_code, f"the last {left_bytes} bytes are not a complete line" in found.output) == (0, True)
    written(path, 5)
    assert "broken_off" in json.loads(path.read_text().splitlines()[6])
    found = verify(path)
    assert (found.exit_code, "10 lines, 1 to 10" in found.output) == (0, True), found.output
    assert f"note: {path}:6: writing a line was interrupted ({left_bytes} bytes), as line 6 says" in found.output
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:5], b"!" + whole[5], *whole[6:]]))
    assert verify(path).exit_code == 1, "what was broken off cannot be edited either"
    path.write_bytes(b"".join([*whole[:5], *whole[6:]]))
    found = verify(path)
    assert (found.exit_code, "which is missing now" in found.output) == (1, True)


def test_a_line_that_lost_only_its_newline_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    written(path, 3)
    path.write_bytes(path.read_bytes()[:-1])
    written(path, 2)
    found = verify(path)
    assert (found.exit_code, "5 lines, 1 to 5: intact" in found.output) == (0, True), found.output


def test_a_last_line_not_written_by_hq_is_found_after_later_ones(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    written(path, 5)
    changed(path, lambda lines: [*lines[:4], b"nothing happened\n"])
    written(path, 5)
    found = verify(path)
    assert (found.exit_code, "audit:5: not a valid line" in found.output) == (1, True)


@pytest.mark.parametrize("expected", ["0", "-1", "x", "5:abc", "5:"])
def test_a_malformed_expect_option_is_a_usage_error(tmp_path: Path, expected: str) -> None:
    written(tmp_path / "audit", 1)
    found = verify("--expect", expected, tmp_path / "audit")
    assert (found.exit_code, "is not a line: write its number" in found.output) == (2, True)
