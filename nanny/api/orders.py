"""Orders: checked, given an author and a time, stored as events, answered when they have taken effect."""

from __future__ import annotations

import asyncio
import hashlib
import re
import zlib
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final

from google.protobuf.field_mask_pb2 import FieldMask

from control import Controller, Events
from hqpb.v1.instance_pb2 import Instance
from nanny.actions.contents import Contents
from nanny.records import kinds
from nanny.records.stored_snapshots import MAX_CHUNKS
from nanny.rollout.views import Key
from nanny.snapshots.adopting import adopted_content
from nanny.snapshots.content import CHUNK_BYTES, Content, chunks_of, digest_of, read_content, text_of
from nannypb.v1 import records_pb2
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ServiceEvent, SnapshotRecord
from serving.calls.methods import Call
from serving.errors import FailedPrecondition, InvalidRequest, NotFound, Overloaded, ServiceError, Violation, invalid
from serving.limiting.caller_threads import CallerThreads
from serving.rights.stored import encode_access

_ID: Final = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._:@-]{1,253}")
LONGEST_WORDS: Final = 1_000
_SHORTEST_PREFIX: Final = 6
_ID_DIGITS: Final = 16
_REMOVED_S: Final = 1_800.0


class NannyOrders:
    """Turns requests into events."""

    def __init__(
        self, controller: Controller, events: Events[ServiceEvent], contents: Contents, locations: Collection[str]
    ) -> None:
        self._controller, self._events = controller, events
        self._contents, self._locations = contents, locations
        self._threads = CallerThreads()  # some megabytes of YAML take a minute

    async def send(self, service: str, event: ServiceEvent, by: pb.Authorship, call: Call, request_id: str) -> None:
        """Store an event, and return when it has taken effect. Raises as `Events.submit`."""
        self._sign(event, by, call)
        timeout_s = 10.0 if call.deadline is None else max(0.1, call.deadline - self._controller.clock.now())
        request_id = request_id or default_request_id(call)
        await self._events.submit(service, event, request_id=request_id, by=event.by.author, timeout_s=timeout_s)
        call.note_write(service, self._controller.version)

    async def add_snapshot(self, request: pb.CreateSnapshotRequest, call: Call) -> pb.Snapshot:
        """Check the content, store it under its hash, then make it HEAD."""
        read = partial(read_content, request.service_id, request.content, self._locations)
        content = await self._threads.run(read, call.caller)
        snapshot = pb.Snapshot(
            id=content.id,
            revision_id=await self._revision_id(request.service_id, content),
            service_id=request.service_id,
            parent=request.parent,
            instances=len(content.placements),
            size_bytes=len(request.content),
        )
        if request.validate_only:
            return snapshot
        event = ServiceEvent()
        self._sign(event, request.by, call)
        snapshot.created.CopyFrom(event.by)
        snapshot.created.comment = snapshot.created.comment or content.title
        chunks = await asyncio.to_thread(chunks_of, request.content)
        stored = await self._store_content(request.service_id, content, chunks)
        event.snapshot.CopyFrom(records_pb2.SnapshotRecord(snapshot=snapshot, chunks=stored))
        await self.send(request.service_id, event, request.by, call, request.request_id)
        return self._controller.records(kinds.SNAPSHOT)[kinds.of_snapshot(request.service_id, content.id)].snapshot

    async def _revision_id(self, service: str, content: Content) -> str:
        """Return the revision id of a held snapshot that runs the same, else the content's own."""
        record = self._controller.records(kinds.SERVICE)[service]
        active = [one.snapshot_id for one in record.snapshot if one.target == pb.TARGET_ACTIVE]
        for known in filter(None, [*active, record.head, *(one.snapshot_id for one in record.snapshot)]):
            try:
                digest = await self._contents.digest_of(service, known)
            except (InvalidRequest, NotFound):
                continue  # a location of it is gone
            if digest == digest_of(content):
                return self._contents.revision_id(service, known)
        return content.revision_id

    async def restart(self, service: str, instances: Mapping[Key, Instance], request_id: str) -> records_pb2.Restart:
        """Make a new snapshot of what runs, with a revision id of its own: agents take it for another revision.

        Raises NotFound, InvalidRequest, and FailedPrecondition: nothing is ACTIVE, or HQ alone knows its secrets.
        """
        record = self._controller.records(kinds.SERVICE)[service]
        active = next((one.snapshot_id for one in record.snapshot if one.target == pb.TARGET_ACTIVE), "")
        if not active:
            raise FailedPrecondition(f"service {service} has no active snapshot: there is nothing to restart")
        old = await self._contents.content_of(service, active)
        text = self._contents.text(service, active)
        name = hashlib.sha256(f"{active}/{request_id}".encode()).hexdigest()[:_ID_DIGITS]
        read = partial(read_content, service, text, self._locations, name, name, was_accepted=True)
        content = await self._threads.run(read, service)
        if not old.description.definitions[0].tells_secrets and _keeps_secrets(instances, old.revision_id):
            raise FailedPrecondition(
                f"snapshot {active} does not describe the secrets that HQ holds for it: add one with the descriptors, "
                "and activate that"
            )
        stored = await self._store_content(service, content, await asyncio.to_thread(chunks_of, text))
        known = self._controller.records(kinds.SNAPSHOT)[kinds.of_snapshot(service, active)].snapshot
        snapshot = pb.Snapshot()
        snapshot.CopyFrom(known)
        snapshot.id = snapshot.revision_id = name
        snapshot.restart_of = known.restart_of or active
        return records_pb2.Restart(
            of=active, snapshot=SnapshotRecord(snapshot=snapshot, chunks=stored), order_id=request_id
        )

    async def adoption(self, service: str, instances: Mapping[Key, Instance]) -> SnapshotRecord:
        """Make a snapshot's content of what runs of a service. Raises InvalidRequest."""
        content, text = await self._threads.run(partial(adopted_content, service, instances), service)
        stored = await self._store_content(service, content, await asyncio.to_thread(chunks_of, text))
        snapshot = pb.Snapshot(
            id=content.id,
            revision_id=content.revision_id,
            service_id=service,
            instances=len(content.placements),
            size_bytes=len(text),
        )
        return SnapshotRecord(snapshot=snapshot, chunks=stored)

    def snapshot_id(self, service: str, told: str) -> str:
        """The full id of a snapshot named by its first characters; empty: HEAD. Raises NotFound."""
        record = self._controller.records(kinds.SERVICE).get(service)
        if record is None:
            raise NotFound(f"there is no service {service}")
        if not told:
            if not record.head:
                raise NotFound(f"service {service} has no snapshot yet: add one with `nanny snapshot add`")
            return record.head
        if told in record.known:
            return told
        found = [one for one in record.known if one.startswith(told) and len(told) >= _SHORTEST_PREFIX]
        if len(found) != 1:
            what = (
                "several snapshots begin with this; write more of the id"
                if found
                else f"service {service} has no such snapshot"
            )
            raise NotFound(f"snapshot {told}: {what}")
        return found[0]

    async def instance_key(self, service: str, snapshot: str, location: str, instance: str) -> Key:
        """The key of the named instance. Raises NotFound: the snapshot does not name it."""
        content = await self._contents.content_of(service, snapshot)
        found = [key for key in content.placements if key[1] == instance and location in ("", key[0])]
        if len(found) != 1:
            what = "in several locations: name one" if found else f"not named by snapshot {snapshot} of {service}"
            raise NotFound(f"instance {instance} is {what}")
        return found[0]

    def _sign(self, event: ServiceEvent, by: pb.Authorship, call: Call) -> None:
        """An authenticated name takes precedence over the one given."""
        identity = call.access.identity
        _check_words(by)
        event.by.author = identity.name if identity is not None else by.author
        event.access = encode_access(call.access)
        event.by.comment, event.by.ticket = by.comment, by.ticket

    async def _store_content(self, service: str, content: Content, chunks: list[bytes]) -> int:
        """Store the missing chunks, one by one; return how many chunks there are. Raises Overloaded."""
        known = self._controller.records(kinds.SNAPSHOT).get(kinds.of_snapshot(service, content.id))
        if known is not None:
            return known.chunks
        held = sum(name.startswith(f"{service}/") for name in self._controller.records(kinds.CHUNK))
        if held + len(chunks) > 2 * MAX_CHUNKS:  # chunks of refused snapshots count, too
            raise Overloaded(f"contents of service {service} wait to be removed: retry in half an hour", _REMOVED_S)
        for number, data in enumerate(chunks):
            assert len(data) <= CHUNK_BYTES
            change = self._controller.creation()
            key = kinds.of_chunk(service, content.id, number)
            if (stored := change.get(kinds.CHUNK, key)) is None:
                change.put(kinds.CHUNK, key, records_pb2.ChunkRecord(data=data))
                await change.commit()
            elif stored.data != data:
                return await self._count_stored(service, content)
        return len(chunks)

    async def _count_stored(self, service: str, content: Content) -> int:
        """How many chunks are stored of another text with the same content, which no snapshot has yet.

        Raises Overloaded: they are not one whole text, so they are left over, or somebody is storing them now.
        """
        stored, held = self._controller.records(kinds.CHUNK), list[bytes]()
        while (chunk := stored.get(kinds.of_chunk(service, content.id, len(held)))) is not None:
            held.append(chunk.data)
        try:
            read = partial(read_content, service, text_of(held), self._locations)
            is_same = (await self._threads.run(read, service)).id == content.id
        except (zlib.error, ServiceError):
            is_same = False
        if not is_same:
            raise Overloaded(
                f"another text of snapshot {content.id} of {service} waits to be removed: retry in half an hour",
                _REMOVED_S,
            )
        return len(held)


def _keeps_secrets(instances: Mapping[Key, Instance], revision_id: str) -> bool:
    return any(one.id == revision_id and one.secret_count for held in instances.values() for one in held.spec.revision)


def default_request_id(call: Call) -> str:
    """The request id of a caller that gave none."""
    return f"call-{call.request_id}"


def check_id(text: str, field: str = "service_id") -> None:
    """Raises InvalidRequest."""
    if not _ID.fullmatch(text):
        raise invalid(field, f"{text[:40]!r} is malformed: use 1 to 253 letters, digits and ._:@-")


def check_mask(mask: FieldMask) -> None:
    """Raises InvalidRequest for what is no field of the info attributes."""
    known: Any = pb.InfoAttributes.DESCRIPTOR
    unknown = [path for path in mask.paths if not FieldMask(paths=[path]).IsValidForDescriptor(known)]
    if unknown:
        raise InvalidRequest(*(Violation("update_mask", f"info has no field {path[:40]!r}") for path in unknown))


def _check_words(by: pb.Authorship) -> None:
    for name in ("author", "comment", "ticket"):
        if len(getattr(by, name)) > LONGEST_WORDS:
            raise invalid(f"by.{name}", f"is longer than {LONGEST_WORDS} characters")
