"""Strategies for well-formed revisions, with all that a revision can have."""

from functools import cache
from typing import Protocol, TypeVar

from hypothesis import strategies as st

from hqpb.v1 import instance_pb2 as pb
from tests.support import value_strategies as words
from tests.support.arbitrary_messages import draw_unknown_fields, with_unknown_fields


class Named(Protocol):
    name: str


T = TypeVar("T", bound=Named)

TARGETS = (pb.REVISION_TARGET_UNSPECIFIED, pb.REVISION_TARGET_INSTALLED, pb.REVISION_TARGET_READY)


@cache
@st.composite
def revisions(draw: st.DrawFn) -> pb.InstanceRevision:
    """One revision, wanted anything, with secret descriptors and some unknown fields."""
    revision = pb.InstanceRevision(id=draw(words.ids(max_size=40)), target=draw(st.sampled_from(TARGETS)))
    revision.container.extend(draw(_named(containers())))
    revision.file.extend(draw(_named(files())))
    revision.package.extend(draw(st.lists(packages(), max_size=2)))
    revision.volume.extend(draw(_named(volumes())))
    revision.secret.extend(draw(_named(secrets())))
    revision.prepare.extend(draw(st.lists(hooks(), max_size=2)))
    return draw_unknown_fields(draw, revision)


@cache
def _named(items: st.SearchStrategy[T]) -> st.SearchStrategy[list[T]]:
    return st.lists(items, max_size=3, unique_by=lambda item: item.name)


@cache
def containers() -> st.SearchStrategy[pb.Container]:
    built = st.builds(
        pb.Container,
        name=words.names(),
        command=st.lists(words.texts(), max_size=3),
        environment=st.dictionaries(words.variables(), words.texts(), max_size=2),
        image=words.texts(),
        layer=st.lists(words.texts(), max_size=2),
        readiness_check=st.none() | readiness_checks(),
        post_start=st.none() | hooks(),
        pre_stop=st.none() | hooks(),
        restart_policy=st.sampled_from(pb.RestartPolicy.values()),
        stop_grace_period=st.none() | words.durations(),
        limit=st.none() | limits(),
    )
    return with_unknown_fields(built)


@cache
def limits() -> st.SearchStrategy[pb.ResourceLimit]:
    return st.builds(pb.ResourceLimit, cpu_millicores=st.integers(0, 10**7), memory_bytes=st.integers(0, 1 << 50))


def _http_paths() -> st.SearchStrategy[str]:
    printable = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20)
    return st.just("") | printable.map("/".__add__)


@cache
def readiness_checks() -> st.SearchStrategy[pb.ReadinessCheck]:
    means = st.one_of(
        st.builds(pb.ExecCheck, command=st.lists(words.texts(), max_size=2)).map(lambda it: {"exec": it}),
        st.builds(pb.TcpCheck, port=words.names()).map(lambda it: {"tcp": it}),
        st.builds(pb.HttpCheck, port=words.names(), path=_http_paths()).map(lambda it: {"http": it}),
    )
    times = st.fixed_dictionaries(
        {}, optional={name: words.durations() for name in ("initial_delay", "period", "timeout")}
    )
    return st.builds(lambda mean, time: pb.ReadinessCheck(**mean, **time), means, times)


@cache
def hooks() -> st.SearchStrategy[pb.LifecycleHook]:
    return st.builds(
        pb.LifecycleHook,
        command=st.lists(words.texts(), max_size=2),
        timeout=st.none() | words.durations(),
        name=words.texts(),
    )


@cache
def files() -> st.SearchStrategy[pb.File]:
    return st.builds(pb.File, name=words.paths(), url=words.lines(), checksum=words.checksums(), mode=words.modes())


@cache
def packages() -> st.SearchStrategy[pb.Package]:
    return st.builds(pb.Package, name=words.paths(), url=words.lines(), checksum=words.checksums())


@cache
def volumes() -> st.SearchStrategy[pb.Volume]:
    return st.builds(
        pb.Volume,
        name=words.names(),
        mount_path=words.paths(),
        disk=st.just("") | words.names(),
        persistent=st.booleans(),
    )


@cache
def secrets() -> st.SearchStrategy[pb.SecretDescriptor]:
    targets = st.one_of(
        st.builds(pb.SecretFile, path=words.paths(), mode=words.modes()).map(lambda it: {"file": it}),
        words.variables().map(lambda it: {"environment_variable": it}),
    )
    ids = words.lines().filter(lambda it: not it.startswith("-"))
    where = st.fixed_dictionaries({"name": words.names(), "provider": words.lines(), "id": ids})
    return st.builds(
        lambda place, target: pb.SecretDescriptor(key="password", **place, **target),
        where,
        targets,
    )
