"""Whether instancectl could run what a file asks for. No I/O beyond reading it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from hqpb.v1.instance_pb2 import Container, InstanceRevision
from instancectl.content.supported import failures
from instancectl.wanted.desired import Desired, is_wanted_ready


def faults(desired: Desired) -> list[str]:
    """What is wrong, a line each; HQ checks the rest when the instance is stored there."""
    ready = [revision.id for revision in desired.revisions if is_wanted_ready(revision)]
    found = [f"spec.revision: {', '.join(ready)} are READY: at most one may be"] if len(ready) > 1 else []
    found += _repeated("spec.revision", (revision.id for revision in desired.revisions))
    for revision in desired.revisions:
        found += [f"revision {revision.id}: {fault}" for fault in _of_revision(revision, desired)]
    return found


def _of_revision(revision: InstanceRevision, desired: Desired) -> Iterator[str]:
    yield from (failure.message for failure in failures(revision))
    yield from _repeated("container", (container.name for container in revision.container))
    yield from _repeated("volume", (volume.name for volume in revision.volume))
    yield from _repeated("secret", (secret.name for secret in revision.secret))
    for secret in revision.secret:
        if secret.WhichOneof("target") is None:
            yield f"secret {secret.name}: has no target: set `file` or `environmentVariable`"
    for container in revision.container:
        yield from _of_ports(container, desired)


def _of_ports(container: Container, desired: Desired) -> Iterator[str]:
    check = container.readiness_check
    for kind in ("tcp", "http"):
        if check.WhichOneof("check") == kind:
            port = getattr(check, kind).port
            if desired.port(port) is None:
                yield f"container {container.name}: its check uses port {port!r}, which is not allocated"


def _repeated(what: str, names: Iterable[str]) -> list[str]:
    return [f"{what}: {name!r} occurs {n} times" for name, n in Counter(names).items() if n > 1]
