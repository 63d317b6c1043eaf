"""The option -f FILE: reads instances and revisions, or exits and names every fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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


def documents_or_exit(
    names: tuple[str, ...], *, recursive: bool, code: Exit = Exit.REFUSED, distinct: bool = False
) -> list[WrittenInstance]:
    """All documents; if any is faulty, prints every fault and exits with `code`.

    Args:
        distinct: two documents that describe one instance are a fault.
    """
    with _faults_told(code):
        documents = read_documents(names, recursive=recursive)
        if distinct and (repeated := _repetitions(documents)):
            raise BadDocument("\n".join(repeated))
        return documents


def revision_or_exit(name: str) -> tuple[str, InstanceRevision]:
    """The one revision in a file, and its place; if it is faulty, prints every fault and exits."""
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


def _repetitions(documents: Iterable[WrittenInstance]) -> list[str]:
    """`web.yaml: documents 1 and 2 both describe web-1`, for each document whose instance an earlier one describes."""
    first: dict[str, WrittenInstance] = {}
    found = []
    for document in documents:
        instance_id = document.instance.meta.id
        earlier = first.setdefault(instance_id, document)
        if earlier is not document:
            found.append(_both(earlier.place, document.place, instance_id))
    return list(dict.fromkeys(found))


def _both(one: str, other: str, instance_id: str) -> str:
    if one == other:
        return f"{one.partition(', ')[0]}: is given twice; name each file once"
    file, _, position = one.rpartition(", ")
    other_file, _, other_position = other.rpartition(", ")
    word, _, number = position.partition(" ")
    other_word, _, other_number = other_position.partition(" ")
    if word in ("document", "item") and (file, word) == (other_file, other_word):
        return f"{file}: {word}s {number} and {other_number} both describe {instance_id}"
    return f"{one} and {other} both describe {instance_id}"
