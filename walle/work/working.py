"""What executors told, put into the operation: one transaction each."""

from __future__ import annotations

from typing import Final

from walle.executors.port import Progress, Seen
from walle.healing.operation import MAX_FAILURES
from walle.work.book import HOST, Book
from wallepb.v1.host_pb2 import STAGE_RUNNING, Host

_MAX_OUTPUT: Final = 4096


def take_attempt(book: Book, name: str, operation_id: str, now_ms: int) -> bool:
    """The work is about to be begun again."""
    host = _running(book, name, operation_id)
    if host is None:
        return False
    host.operation.intent.attempts += 1
    host.operation.intent.handle, host.operation.intent.attempt_ms = "", now_ms
    book.put(HOST, name, host)
    return True


def take_handle(book: Book, name: str, operation_id: str, handle: str) -> None:
    """The work was begun."""
    host = _running(book, name, operation_id)
    if host is not None:
        host.operation.intent.handle = handle
        host.operation.message = f"{host.operation.intent.executor} works"
        book.put(HOST, name, host)


def take_work_failure(book: Book, name: str, operation_id: str, text: str) -> None:
    """It could not be begun; after three times in a row it is given up."""
    host = _running(book, name, operation_id)
    if host is not None:
        _fail(host, text)
        book.put(HOST, name, host)


def take_seen(book: Book, name: str, operation_id: str, seen: Seen) -> None:
    """What the world shows of the work."""
    host = _running(book, name, operation_id)
    if host is None or seen.progress in (Progress.RUNNING, Progress.NOT_BEGUN):
        return
    host.operation.intent.output = seen.output[-_MAX_OUTPUT:]
    if seen.progress is Progress.DONE:
        host.operation.intent.done = True
    else:
        _fail(host, seen.output or "the work failed", times=MAX_FAILURES)
    book.put(HOST, name, host)


def _fail(host: Host, text: str, times: int = 1) -> None:
    host.operation.failures += times
    host.operation.message = f"{host.operation.intent.executor}: {text}"[:1000]


def _running(book: Book, name: str, operation_id: str) -> Host | None:
    host = book.get(HOST, name)
    if host is None or host.operation.id != operation_id or host.operation.stage != STAGE_RUNNING:
        return None
    return host
