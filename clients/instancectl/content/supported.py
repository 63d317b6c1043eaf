"""What instancectl cannot do is said before anything is prepared. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from hqpb.v1.instance_pb2 import Container, InstanceRevision, LifecycleHook
from instancectl.content.delivery import mode_of
from instancectl.content.failure import PrepareFailed
from instancectl.content.fetch import check_scheme


def check_supported(revision: InstanceRevision) -> None:
    """Raises PrepareFailed: for the first thing of a revision that cannot be done."""
    for failure in failures(revision):
        raise failure


def failures(revision: InstanceRevision) -> Iterator[PrepareFailed]:
    """Everything of a revision that cannot be done."""
    for container in revision.container:
        yield from _of_container(container)
    for number, hook in enumerate(revision.prepare, 1):
        yield from _of_hook(hook, f"prepare script {hook.name or number}")
    for check in _checks(revision):
        try:
            check()
        except PrepareFailed as failure:
            yield failure


def _checks(revision: InstanceRevision) -> Iterator[Callable[[], object]]:
    for file in revision.file:
        yield partial(check_scheme, file.url, f"file {file.name}")
    for package in revision.package:
        yield partial(check_scheme, package.url, f"package {package.name}")
    for secret in revision.secret:
        if secret.WhichOneof("target") == "file":
            yield partial(mode_of, secret)


def _of_container(container: Container) -> Iterator[PrepareFailed]:
    what = f"container {container.name}"
    if container.image or container.layer:
        yield PrepareFailed("ImageUnsupported", f"{what}: images and layers are not supported by instancectl")
    if not container.command:
        yield PrepareFailed("NoCommand", f"{what}: has no command")
    for name in ("post_start", "pre_stop"):
        if container.HasField(name):
            yield from _of_hook(getattr(container, name), f"{what}, {name}")


def _of_hook(hook: LifecycleHook, what: str) -> Iterator[PrepareFailed]:
    if not hook.command:
        yield PrepareFailed("NoCommand", f"{what}: has no command")
