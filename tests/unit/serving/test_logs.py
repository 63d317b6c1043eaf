"""The form of log lines; a repeated fault does not fill the disk."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from serving.calls import current
from serving.calls.methods import Call
from serving.clock import ManualClock
from serving.telemetry.logs import CallFields, RepeatFilter, TextFormatter, json_formatter
from store.etcd import EtcdConfig

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Traced(Call):
    def header(self, name: str) -> str:
        return {"traceparent": TRACE}.get(name, "")


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    logger = logging.getLogger("tests.of.logs")
    logger.propagate = False
    yield logger
    logger.handlers.clear()


def written(log: logging.Logger, formatter: logging.Formatter) -> io.StringIO:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    handler.addFilter(CallFields())
    log.addHandler(handler)
    return stream


def test_json_lines_have_the_documented_fields_and_no_empty_ones(log: logging.Logger) -> None:
    stream = written(log, json_formatter())
    log.warning("lost %d of %d", 1, 2)
    line: dict[str, Any] = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {"level": "warning", "logger": "tests.of.logs", "message": "lost 1 of 2"}


def test_a_line_within_a_call_names_it_and_its_trace(log: logging.Logger) -> None:
    stream, people = written(log, json_formatter()), written(log, TextFormatter())
    token = current.CURRENT.set(Traced(request_id="abc-1"))
    log.warning("halfway")
    current.CURRENT.reset(token)
    log.warning("afterwards")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["request_id"], first["trace_id"]) == ("abc-1", TRACE[3:35])
    assert "request_id" not in second
    lines = people.getvalue().splitlines()
    assert lines[0].endswith("WARNING halfway [abc-1]")
    assert lines[1].endswith("WARNING afterwards")


def test_json_has_the_traceback_in_the_same_line(log: logging.Logger) -> None:
    stream = written(log, json_formatter())
    try:
        {"this": 1}["which"]
    except KeyError:
        log.exception("failed")
    (line,) = stream.getvalue().splitlines()
    assert "KeyError: 'which'" in json.loads(line)["exc_info"]


@pytest.mark.parametrize("text", ["", "00-0-0-00", TRACE.upper(), TRACE + "\nfake line", "x" * 10_000])
def test_a_malformed_trace_context_is_not_passed_on(text: str) -> None:
    class Wild(Call):
        def header(self, name: str) -> str:
            return text

    token = current.CURRENT.set(Wild(request_id="abc-1"))
    assert current.trace_id() == ""
    assert "traceparent" not in dict(current.forwarded_metadata())
    current.CURRENT.reset(token)


def test_repeated_messages_are_logged_a_few_times_and_then_counted(log: logging.Logger) -> None:
    clock, lines = ManualClock(), Lines()
    log.addHandler(RepeatFilter(lines, clock.now, most=3, window_s=10.0))
    for number in range(100):
        log.warning("lost %d", number)
    assert lines.lines == ["lost 0", "lost 1", "lost 2"]
    clock.advance(11)
    log.warning("something else")
    assert lines.lines[3:] == ["repeated 97 times within 10 s: lost 99", "something else"]
    log.warning("lost %d", 100)
    assert lines.lines[-1] == "lost 100"


def test_a_noisy_message_silences_neither_others_nor_errors_of_its_own_text(log: logging.Logger) -> None:
    clock, lines = ManualClock(), Lines()
    log.addHandler(RepeatFilter(lines, clock.now, most=1, window_s=10.0))
    for _ in range(3):
        log.warning("lost")
        log.error("lost")
        log.warning("found")
    assert lines.lines == ["lost", "lost", "found"]


def test_the_count_of_repeats_is_logged_at_the_end(log: logging.Logger) -> None:
    clock, lines = ManualClock(), Lines()
    quiet = RepeatFilter(lines, clock.now, most=1, window_s=10.0)
    log.addHandler(quiet)
    log.warning("lost")
    log.warning("lost")
    quiet.close()
    assert lines.lines == ["lost", "repeated 1 times within 10 s: lost"]


def test_the_memory_for_kinds_of_messages_is_bounded(log: logging.Logger) -> None:
    clock, lines = ManualClock(), Lines()
    quiet = RepeatFilter(lines, clock.now)
    log.addHandler(quiet)
    for number in range(3_000):
        log.warning(f"lost {number}")  # as a careless place would
    assert len(quiet._kinds) <= 1_001
    assert len(lines.lines) == 3_000


def test_a_password_is_in_no_words_about_the_settings() -> None:
    assert "hush" not in repr(EtcdConfig(("127.0.0.1:2379",), user="hq", password="hush"))


def test_text_of_a_caller_cannot_begin_a_line_of_its_own(log: logging.Logger) -> None:
    """Otherwise a caller could forge a line of the audit log."""
    people = written(log, TextFormatter())
    log.warning("xDS: %s subscribes", "x\r\n2026-11-26 12:00:00,000 INFO    {}\x1b[2J")
    assert people.getvalue().count("\n") == 1
    assert "x\\r\\n2026-11-26 12:00:00,000 INFO    {}\\x1b[2J subscribes" in people.getvalue()
