"""The option -f FILE: reads instances and revisions, or ends the process and names every fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from hqcli.documents import BadDocument
from hqcli.exits import Exit
from hqcli.instances import WrittenInstance, read_documents, read_revision
from hqctl.asking.session import complain
from hqpb.v1.instance_pb2 import InstanceRevision

F = TypeVar("F", bound=Callable[..., Any])


def filenames(*, required: bool = True) -> Callable[[F], F]:
    """Give a command the options -f (as `names`) and -R (as `recursive`)."""

    def decorate(function: F) -> F:
        named = click.option(
            "-f",
            "--filename",
            "names",
            multiple=True,
            required=required,
            metavar="FILE",
            help="File, folder or - (stdin); repeatable.",
        )
        recursive = click.option("-R", "--recursive", is_flag=True, help="Include subfolders.")
        return named(recursive(function))

    return decorate


def documents_or_exit(names: tuple[str, ...], *, recursive: bool, code: Exit = Exit.REFUSED) -> list[WrittenInstance]:
    """All documents; if any is faulty, every fault is told and the process ends with `code`."""
    with _faults_told(code):
        return read_documents(names, recursive=recursive)


def revision_or_exit(name: str) -> InstanceRevision:
    """The one revision in a file; if it is faulty, every fault is told and the process ends."""
    with _faults_told(Exit.REFUSED):
        return read_revision(name)


@contextmanager
def _faults_told(code: Exit) -> Iterator[None]:
    try:
        yield
    except BadDocument as fault:
        for line in str(fault).splitlines():
            complain(line)
        raise SystemExit(code) from None
