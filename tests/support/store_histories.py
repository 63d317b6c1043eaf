"""Random histories of a store: the records of a few instances that are created, changed, spoiled and deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from hq import keys as k
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from store.port import Batch, KeyChange, Record

# Ids that are prefixes of others, and one that sorts between them.
IDS = ("a", "a-1", "a-1.b", "a-10", "a.1", "b")
SERVICES = ("s", "s-1")
NODES = ("", "n", "n-1")
REVISIONS = ("r", "r-1")
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"engine": "jvm"},
    {"engine": "jvm", "allocator": "x"},
    {"allocator": "x"},
    {"engine": "x=y"},
    {"engine=x": "y"},
)
EPOCH = "epoch-1"
RUBBISH = b"\xff\xff\xff"

Do = Callable[["World", str], list[tuple[str, bytes | None]]]
Step = list[tuple[str, Do]]


class World:
    """A store's content, and how it changes.

    Attributes:
        version: of the last change.
        uids: of the last instance of each id.
    """

    def __init__(self, prefix: str = k.DEFAULT_PREFIX) -> None:
        self.keys = k.HqKeys(prefix)
        self._live: dict[bytes, Record] = {}
        self._serial = 0
        self.version = 1
        self.uids: dict[str, int] = {}
        self.change({self.keys.epoch: storage_pb2.EpochRecord(epoch=EPOCH).SerializeToString()})

    def records(self) -> list[Record]:
        """Records as a listing shows them."""
        return [self._live[key] for key in sorted(self._live)]

    def change(self, puts: dict[bytes, bytes | None]) -> Batch:
        """One transaction: None deletes. A deletion of nothing is no change."""
        at = self.version + 1
        changes = []
        for key, value in puts.items():
            old = self._live.pop(key, None)
            if value is not None:
                self._live[key] = Record(key, value, old.created if old else at, at)
                changes.append(KeyChange(key, value, self._live[key].created, at))
            elif old is not None:
                changes.append(KeyChange(key, None, 0, at))
        self.version = at if changes else self.version
        return Batch(self.version, changes)

    def step(self, step: Step) -> Batch:
        """What several writers do in one transaction."""
        puts: dict[bytes, bytes | None] = {}
        for instance_id, do in step:
            puts |= {self.keys.of(kind, instance_id): value for kind, value in do(self, instance_id)}
        return self.change(puts)

    def next(self) -> int:
        """A number that was not there before."""
        self._serial += 1
        return self._serial

    def difference(self, known: set[bytes], after: int) -> Batch:
        """What a listing shows to somebody who missed what came after a version, in no order."""
        changed = [KeyChange(r.key, r.value, r.created, r.modified) for r in self.records() if r.modified > after]
        gone = [KeyChange(key, None, 0, self.version) for key in sorted(known - self._live.keys(), reverse=True)]
        return Batch(self.version, gone + changed[::-1])


def spec_of(world: World, instance_id: str, service: str, node: str, labels: dict[str, str], more: int) -> bytes:
    """A spec record; `more` says which revisions it has, and whether it is allocated."""
    meta = model.InstanceMeta(id=instance_id, uid=world.uids[instance_id], service_id=service, labels=labels)
    meta.cluster = "c" if more % 2 else "c-1"
    meta.annotations["serial"] = str(world.next())
    spec = model.InstanceSpec(node_name=node)
    for i, revision in enumerate(REVISIONS):
        if more >> i & 1:
            spec.revision.add(id=revision)
    if more & 4:
        spec.allocation.cpu_millicores = 1
    record = storage_pb2.SpecRecord(write_id=world.next(), request_id=f"request-{instance_id}")
    record.meta, record.spec = meta.SerializeToString(), spec.SerializeToString()
    return record.SerializeToString()


def status_of(world: World, instance_id: str, ready: dict[str, bool]) -> bytes:
    """A status record of some revisions."""
    status = model.InstanceStatus()
    record = storage_pb2.StatusRecord(write_id=world.next(), uid=world.uids.get(instance_id, 0))
    for revision, is_ready in ready.items():
        sequence = world.next()
        status.revision.add(id=revision, sequence=sequence).ready.status = _condition(is_ready)
        mark = record.revision.add(id=revision, ready=is_ready, incarnation=7, sequence=sequence, digest=sequence)
        mark.heard_unix_ms, mark.heard_by = 1_700_000_000_000 + sequence, "replica-1"
    status.ready.status = _condition(any(ready.values()))
    record.status = status.SerializeToString()
    return record.SerializeToString()


def _condition(ready: bool) -> model.ConditionStatus:
    return model.CONDITION_STATUS_TRUE if ready else model.CONDITION_STATUS_FALSE


# --- strategies -----------------------------------------------------------------------------------------------------


@cache
def steps(*, spoiled: bool = True) -> st.SearchStrategy[Step]:
    """Up to three instances changed in one transaction. Spoiled: some records are rubbish."""
    return st.lists(st.tuples(st.sampled_from(IDS), _deeds(spoiled)), min_size=1, max_size=3, unique_by=lambda s: s[0])


@st.composite
def filters(draw: st.DrawFn) -> pb.InstanceFilter:
    """Filters of few fields: filters of many match nothing."""
    wanted = pb.InstanceFilter()
    for field in draw(st.lists(st.sampled_from(sorted(_ASKED)), max_size=3, unique=True)):
        wanted.MergeFrom(pb.InstanceFilter(**{field: draw(_ASKED[field])}))
    return wanted


def _some(words: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), min_size=1, max_size=3)


@st.composite
def _requirements(draw: st.DrawFn) -> pb.LabelRequirement:
    valued = pb.LABEL_OPERATOR_IN, pb.LABEL_OPERATOR_NOT_IN
    operator = draw(st.sampled_from((*valued, pb.LABEL_OPERATOR_EXISTS, pb.LABEL_OPERATOR_DOES_NOT_EXIST)))
    values = draw(_some(("jvm", "x", "x=y", "y"))) if operator in valued else []
    key = draw(st.sampled_from(("engine", "allocator", "engine=x")))
    return pb.LabelRequirement(key=key, operator=operator, value=values)


_ASKED: dict[str, st.SearchStrategy[Any]] = {
    "instance_id": _some(IDS),
    "service_id": _some((*SERVICES, "other")),
    "node_name": _some(("n", "n-1", "n-2")),
    "revision_id": _some(REVISIONS),
    "cluster": _some(("c", "c-1")),
    "labels": st.sampled_from(LABELS),
    "label_requirement": st.lists(_requirements(), min_size=1, max_size=2),
    "readiness": st.sampled_from((1, 2)),
    "allocated": st.sampled_from((1, 2)),
}


@cache
def _deeds(spoiled: bool) -> st.SearchStrategy[Do]:
    deeds = [_creations(), _creations(), _updates(), _reports(), _reports(), st.just(_delete), _secrets()]
    return st.one_of(*deeds, st.sampled_from(_SPOILING)) if spoiled else st.one_of(*deeds)


@cache
def _contents() -> st.SearchStrategy[tuple[str, str, dict[str, str], int]]:
    return st.tuples(st.sampled_from(SERVICES), st.sampled_from(NODES), st.sampled_from(LABELS), st.integers(0, 7))


@cache
def _readiness() -> st.SearchStrategy[dict[str, bool]]:
    return st.dictionaries(st.sampled_from(REVISIONS), st.booleans(), max_size=2)


def _creations() -> st.SearchStrategy[Do]:
    def create(contents: tuple[str, str, dict[str, str], int]) -> Do:
        def do(world: World, instance_id: str) -> list[tuple[str, bytes | None]]:
            world.uids[instance_id] = 1 << 40 | world.next()
            spec, status = spec_of(world, instance_id, *contents), status_of(world, instance_id, {})
            return [(k.SPEC, spec), (k.STATUS, status)]

        return do

    return _contents().map(create)


def _updates() -> st.SearchStrategy[Do]:
    def update(contents: tuple[str, str, dict[str, str], int]) -> Do:
        def do(world: World, instance_id: str) -> list[tuple[str, bytes | None]]:
            world.uids.setdefault(instance_id, 1 << 40 | world.next())
            return [(k.SPEC, spec_of(world, instance_id, *contents))]

        return do

    return _contents().map(update)


def _reports() -> st.SearchStrategy[Do]:
    def report(ready: dict[str, bool]) -> Do:
        return lambda world, instance_id: [(k.STATUS, status_of(world, instance_id, ready))]

    return _readiness().map(report)


def _secrets() -> st.SearchStrategy[Do]:
    some = storage_pb2.SecretsRecord(revision=[storage_pb2.RevisionSecrets(id="r")]).SerializeToString()
    return st.sampled_from((some, None)).map(lambda value: lambda world, instance_id: [(k.SECRETS, value)])


def _delete(world: World, instance_id: str) -> list[tuple[str, bytes | None]]:
    return [(k.SPEC, None), (k.STATUS, None), (k.SECRETS, None)]


def _stranger(world: World, instance_id: str) -> list[tuple[str, bytes | None]]:
    world.uids.setdefault("stranger", 1)
    return [(k.SPEC, spec_of(world, "stranger", "s", "n", {}, 1))]


def _bad_part(world: World, instance_id: str) -> list[tuple[str, bytes | None]]:
    status = storage_pb2.StatusRecord(status=RUBBISH).SerializeToString()
    return [(k.SPEC, storage_pb2.SpecRecord(meta=RUBBISH).SerializeToString()), (k.STATUS, status)]


def _bad_spec(world: World, instance_id: str) -> list[tuple[str, bytes | None]]:
    return [(k.SPEC, RUBBISH), (k.STATUS, status_of(world, instance_id, {"r": True}))]


_SPOILING: tuple[Do, ...] = (
    lambda world, instance_id: [(k.SPEC, RUBBISH)],
    lambda world, instance_id: [(k.STATUS, RUBBISH)],
    lambda world, instance_id: [(k.SPEC, None)],
    lambda world, instance_id: [(k.STATUS, None)],
    _bad_spec,
    _bad_part,
    _stranger,
)
