"""Clients of replicas in the test's own loop that write down what they did and were told (recording.py)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from hq.errors import VersionConflict
from hq.memory.entry import Entry
from hq.memory.query import Query
from hq.registry.preconditions import Precondition
from hq.registry.reads import Found, GroupCount
from hq.registry.registry import Registry
from hq.registry.source import Source
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import OutcomeUnknown, ServiceError, StoreUnavailable
from tests.checker import marks
from tests.checker.history import CACHED, FAILED, OK, STRONG, UNKNOWN, Item, Op, Read, Write
from tests.support.recording import Diary, filter_of, item_of
from tests.support.sample_instances import instance

T = TypeVar("T")
CALL_S = 10.0


class Client:
    """Makes calls and writes them down. A refused call returns None.

    Attributes:
        last: the call that was made last.
    """

    last: Op

    def __init__(self, diary: Diary, name: str, registry: Callable[[], Registry]) -> None:
        """`registry`: which replica is asked next."""
        self.diary, self.name, self.registry = diary, name, registry

    # --- writes -----------------------------------------------------------------------------------------------------

    async def create(
        self, instance_id: str, service: str = "web", node: str = "node-1", revisions: tuple[str, ...] = ("r1", "r2")
    ) -> int | None:
        wanted = instance(instance_id, service, node, revisions)
        secret = wanted.spec.revision[0].secret.add(name="key", provider="vault", id="k")
        secret.environment_variable = "KEY"
        marker = self._marker()
        marks.mark_instance(wanted, marker)
        return await self._write(
            "create",
            instance_id,
            Write(marker),
            lambda r: r.writes.create(wanted, marker, self._deadline(r), validate_only=False),
        )

    async def update(self, instance_id: str, version: int = 0, *, service: str = "web", node: str = "") -> int | None:
        """Its service, or with `node` its node. A version is demanded where one is named."""
        marker = self._marker()
        wanted = marks.mark_instance(instance(instance_id, service, node), marker)
        mask = ["meta.annotations", "spec.node_name" if node else "meta.service_id"]
        return await self._write(
            "update",
            instance_id,
            Write(marker, version),
            lambda r: r.writes.update(wanted, mask, Precondition(version), self._deadline(r), validate_only=False),
        )

    async def put_revision(self, instance_id: str, revision_id: str, version: int = 0) -> int | None:
        marker = self._marker()
        revision = marks.mark_revision(model.InstanceRevision(id=revision_id), marker)
        write = Write(marker, version, revision_id=revision_id)
        return await self._write(
            "put_revision",
            instance_id,
            write,
            lambda r: r.writes.put_revision(
                instance_id,
                revision,
                Precondition(version),
                self._deadline(r),
                clear_secrets=False,
                validate_only=False,
            ),
        )

    async def delete_revision(self, instance_id: str, revision_id: str) -> int | None:
        write = Write(revision_id=revision_id)
        return await self._write(
            "delete_revision",
            instance_id,
            write,
            lambda r: r.writes.delete_revision(instance_id, revision_id, Precondition(), self._deadline(r)),
        )

    async def delete(self, instance_id: str, version: int = 0) -> int | None:
        async def delete(registry: Registry) -> int:
            return await registry.writes.delete(instance_id, Precondition(version), self._deadline(registry))

        return await self._write("delete", instance_id, Write(precondition_version=version), delete)

    async def apply(self, instance_id: str, service: str = "web") -> int | None:
        marker = self._marker()
        wanted = marks.mark_instance(instance(instance_id, service, "node-1", ("r1", "r2")), marker)

        async def apply(registry: Registry) -> int:
            [applied] = await registry.apply.apply([wanted], "", self._deadline(registry), validate_only=False)
            if applied.error is not None:
                raise applied.error
            return applied.version

        return await self._write("apply", instance_id, Write(marker), apply)

    async def _write(
        self, op: str, key: str, write: Write, send: Callable[[Registry], Awaitable[Entry | int]]
    ) -> int | None:
        def told(answer: Entry | int) -> Write:
            version = answer if isinstance(answer, int) else answer.version
            return Write(write.marker, write.precondition_version, version, None, write.revision_id)

        answer = await self.call(op, key, send, write=write, told=told)
        return None if answer is None else told(answer).version

    # --- reads ------------------------------------------------------------------------------------------------------

    async def get(self, instance_id: str, *, strong: bool = False, min_version: int = 0) -> Item | None:
        wanted = {"instance_id": instance_id}

        def shown(answer: tuple[Entry, Source]) -> Read:
            return self._read(answer[1], [answer[0]], wanted, strong, min_version)

        options = _options(strong, min_version)
        answer = await self.call(
            "get", instance_id, lambda r: r.reads.get(instance_id, options, self._deadline(r)), read=Read(), shown=shown
        )
        return None if answer is None else item_of(answer[0])

    async def find(self, wanted: dict[str, str], page_size: int = 0, *, strong: bool = False) -> dict[str, Item] | None:
        """All pages, one after the other; None if one was refused."""
        token, after, found = "", "", dict[str, Item]()
        while True:
            page = await self._page(wanted, page_size, strong, token, after)
            if page is None:
                return None
            found |= {entry.traits.id: item_of(entry) for entry in page.entries}
            if not page.next_page_token:
                return found
            token, after = page.next_page_token, page.entries[-1].traits.id

    async def _page(self, wanted: dict[str, str], page_size: int, strong: bool, token: str, after: str) -> Found | None:
        query, options = Query(filter_of(wanted)), _options(strong, 0)

        def shown(found: Found) -> Read:
            upto = found.entries[-1].traits.id if found.next_page_token else ""
            return self._read(found.source, found.entries, wanted, strong, 0, after, upto)

        async def send(registry: Registry) -> Found:
            return await registry.reads.find(query, page_size, token, options, self._deadline(registry))

        return await self.call("find", "", send, read=Read(), shown=shown)

    async def count(self, wanted: dict[str, str]) -> None:
        def shown(answer: tuple[list[GroupCount], Source]) -> Read:
            groups, source = answer
            totals = sum(group.total for group in groups), sum(group.ready for group in groups)
            return self._read(source, [], wanted, False, 0, totals=totals)

        query = Query(filter_of(wanted))
        await self.call(
            "count",
            "",
            lambda r: r.reads.count(query, 0, pb.ReadOptions(), self._deadline(r)),
            read=Read(),
            shown=shown,
        )

    @staticmethod
    def _read(
        source: Source,
        entries: Sequence[Entry],
        wanted: dict[str, str],
        strong: bool,
        min_version: int,
        after: str = "",
        upto: str = "",
        totals: tuple[int, int] | None = None,
    ) -> Read:
        items = {entry.traits.id: item_of(entry) for entry in entries}
        return Read(
            min_version,
            STRONG if strong else CACHED,
            source.version,
            source.epoch,
            source.stale,
            source.replica,
            items,
            wanted,
            after,
            upto,
            totals,
            source.staleness_ms / 1000 if source.staleness_ms >= 0 else None,
        )

    # --- writing down -----------------------------------------------------------------------------------------------

    async def call(
        self,
        op: str,
        key: str,
        send: Callable[[Registry], Awaitable[T]],
        *,
        write: Write | None = None,
        told: Callable[[T], Write] | None = None,
        read: Read | None = None,
        shown: Callable[[T], Read] | None = None,
    ) -> T | None:
        """A call, with what was asked and how to read the answer."""
        called, number = self.diary.now_ns(), self.diary.number()
        outcome, error, answer = UNKNOWN, "", None
        try:
            answer = await send(self.registry())
            outcome = OK
            write = told(answer) if told else write
            read = shown(answer) if shown else read
        except ServiceError as refused:
            error = refused.reason
            lost_heartbeat = op in ("heartbeat", "report") and isinstance(refused, StoreUnavailable)
            outcome = UNKNOWN if isinstance(refused, OutcomeUnknown) or lost_heartbeat else FAILED
            if write is not None and isinstance(refused, VersionConflict):
                write = Write(write.marker, write.precondition_version, 0, refused.current, write.revision_id)
        finally:
            returned = self.diary.now_ns() if outcome != UNKNOWN or error else None
            self.last = Op(number, self.name, op, called, returned, outcome, key, error, write, read)
            self.diary.events.append(self.last)
        return answer

    def _marker(self) -> str:
        return f"{self.name}-{self.diary.number()}"

    @staticmethod
    def _deadline(registry: Registry) -> float:
        return registry.replica.clock.now() + CALL_S


def _options(strong: bool, min_version: int) -> pb.ReadOptions:
    consistency = pb.READ_CONSISTENCY_STRONG if strong else pb.READ_CONSISTENCY_UNSPECIFIED
    return pb.ReadOptions(min_version=min_version, consistency=consistency)
