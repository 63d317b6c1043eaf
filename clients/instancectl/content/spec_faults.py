"""Unsupported parts and mistakes of a specification, found before anything is fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from hqpb.v1.instance_pb2 import Container, InstanceRevision, LifecycleHook
from instancectl.content import PrepareFailed
from instancectl.content.fetch import check_scheme
from instancectl.content.secrets import mode_of
from instancectl.wanted.desired import Desired, is_wanted_ready


def check_supported(revision: InstanceRevision) -> None:
    """Raises PrepareFailed: for the first unsupported part of a revision."""
    for failure in failures(revision):
        raise failure


def failures(revision: InstanceRevision) -> Iterator[PrepareFailed]:
    """Everything in a revision that is not supported."""
    for container in revision.container:
        yield from _container_failures(container)
    for number, hook in enumerate(revision.prepare, 1):
        yield from _hook_failures(hook, f"prepare script {hook.name or number}")
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


def _container_failures(container: Container) -> Iterator[PrepareFailed]:
    what = f"container {container.name}"
    if container.image or container.layer:
        yield PrepareFailed("ImageUnsupported", f"{what}: images and layers are not supported by instancectl")
    if not container.command:
        yield PrepareFailed("NoCommand", f"{what}: has no command")
    for name in ("post_start", "pre_stop"):
        if container.HasField(name):
            yield from _hook_failures(getattr(container, name), f"{what}, {name}")


def _hook_failures(hook: LifecycleHook, what: str) -> Iterator[PrepareFailed]:
    if not hook.command:
        yield PrepareFailed("NoCommand", f"{what}: has no command")


def faults(desired: Desired) -> list[str]:
    """Find faults, a line each; HQ checks the rest when the instance is stored there."""
    ready = [revision.id for revision in desired.revisions if is_wanted_ready(revision)]
    found = [f"spec.revision: {', '.join(ready)} are READY: at most one may be"] if len(ready) > 1 else []
    found += _duplicate_faults("spec.revision", (revision.id for revision in desired.revisions))
    for revision in desired.revisions:
        found += [f"revision {revision.id}: {fault}" for fault in _revision_faults(revision, desired)]
    return found


def _revision_faults(revision: InstanceRevision, desired: Desired) -> Iterator[str]:
    yield from (failure.message for failure in failures(revision))
    yield from _duplicate_faults("container", (container.name for container in revision.container))
    yield from _duplicate_faults("volume", (volume.name for volume in revision.volume))
    yield from _duplicate_faults("secret", (secret.name for secret in revision.secret))
    for secret in revision.secret:
        if secret.WhichOneof("target") is None:
            yield f"secret {secret.name}: has no target: set `file` or `environmentVariable`"
    for container in revision.container:
        yield from _port_faults(container, desired)


def _port_faults(container: Container, desired: Desired) -> Iterator[str]:
    for check in (container.readiness_check, container.liveness_check, container.startup_check):
        kind = check.WhichOneof("check")
        if kind in ("tcp", "http", "grpc") and desired.port(port := getattr(check, kind).port) is None:
            yield f"container {container.name}: its check uses port {port!r}, which is not allocated"


def _duplicate_faults(what: str, names: Iterable[str]) -> list[str]:
    return [f"{what}: {name!r} occurs {n} times" for name, n in Counter(names).items() if n > 1]
