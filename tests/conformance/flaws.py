"""What a client may lack, as patches of Python's: each scenario must fail with the flaw that it names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import grpc

from hqclient import credentials, links, watch
from hqclient.discovery import doubts, endpoint_list, feed, followed, roster, saved
from hqclient.discovery.endpoint import (
    DEFAULT_WEIGHT,
    Endpoint,
    KnownInstance,
    endpoint,
    known_instance,
    ready_instance,
)
from hqclient.discovery.roster import Delta, Origin
from hqclient.errors import HqApiError
from hqclient.pool import Replicas
from hqclient.watch_items import Bookmark, Interrupted, Resync, Synced, WatchProgress
from hqpb.v1 import service_pb2 as pb

Change = Callable[[WatchProgress, pb.WatchInstancesResponse], pb.WatchInstancesResponse | None]
_FLAWS: Final[dict[str, Callable[[], None]]] = {}


def apply_flaw(name: str) -> None:
    """Take a behaviour away from this process's client."""
    _FLAWS[name]()


def flaw(make: Callable[[], None]) -> Callable[[], None]:
    _FLAWS[make.__name__] = make
    return make


def put(owner: Any, name: str, value: Any) -> None:
    """Replace an attribute."""
    setattr(owner, name, value)


def wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a method; the wrapper gets the original one first."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *args, **options: wrapper(original, *args, **options))


def change_messages(change: Change) -> None:
    """Alter messages before the client looks at them; None: drop it."""

    def wrapper(original: Any, self: WatchProgress, message: pb.WatchInstancesResponse) -> Any:
        changed = change(self, message)
        return original(self, changed) if changed is not None else []

    wrap(WatchProgress, "apply_message", wrapper)


def change_instances(change: Callable[[KnownInstance], KnownInstance]) -> None:
    """Alter what is kept of an instance."""

    def changed(instance: Any) -> KnownInstance | None:
        kept = ready_instance(instance)
        return change(kept) if kept else None

    put(feed, "ready_instance", changed)


def drop_kinds(*kinds: int) -> None:
    change_messages(lambda _, message: None if message.kind in kinds else message)


def drop_events(kind: str) -> None:
    def change(_: WatchProgress, message: pb.WatchInstancesResponse) -> pb.WatchInstancesResponse:
        kept = [event for event in message.events if event.WhichOneof("change") != kind]
        del message.events[:]
        message.events.extend(kept)
        return message

    change_messages(change)


def forget_when(is_time: Callable[[roster.Roster, Any], Iterable[Any]]) -> None:
    """Remove the instances whose keys `is_time` names for an item of the watch."""

    def wrapper(original: Any, self: roster.Roster, item: Any, now: float) -> Any:
        deltas = original(self, item, now)
        gone = {key: (self.instances.pop(key), None) for key in list(is_time(self, item))}
        return [*deltas, Delta(gone)] if gone else deltas

    wrap(roster.Roster, "apply", wrapper)


def never_return() -> Any:
    async def wait(*_: Any) -> None:
        await asyncio.Event().wait()

    return wait


def watch_once() -> None:
    """No second watch after one that HQ ended."""

    async def once(self: feed.Feed) -> None:
        try:
            await self._follow()
        except HqApiError as error:
            self._on_watch_refused(error)

    put(feed.Feed, "_watch", once)


# --- the list -----------------------------------------------------------------------------------------------------


@flaw
def ignores_snapshots() -> None:
    drop_kinds(pb.WATCH_KIND_SNAPSHOT)


@flaw
def shows_parts() -> None:
    def change(_: WatchProgress, message: pb.WatchInstancesResponse) -> pb.WatchInstancesResponse:
        if message.kind == pb.WATCH_KIND_SNAPSHOT:
            message.kind, message.resume_token = pb.WATCH_KIND_EVENTS, "part"
        return message

    change_messages(change)


@flaw
def calls_empty_unknown() -> None:
    found: Any = followed.FeedHandle.source
    source = property(lambda self: found.fget(self) if self._feed.roster.instances else Origin.NONE)
    put(followed.FeedHandle, "source", source)


@flaw
def ignores_events() -> None:
    drop_kinds(pb.WATCH_KIND_EVENTS)


@flaw
def splits_versions() -> None:
    def change(self: WatchProgress, message: pb.WatchInstancesResponse) -> pb.WatchInstancesResponse:
        message.resume_token = message.resume_token or self.resume_token
        return message

    change_messages(change)


@flaw
def ignores_deletions() -> None:
    drop_events("delete")


@flaw
def ignores_leaving() -> None:
    drop_events("left")


@flaw
def fails_on_unknown_ids() -> None:
    def wrapper(original: Any, self: roster.Roster, event: pb.WatchEvent) -> Any:
        key, after = original(self, event)
        if after is None:
            self.instances[key]
        return key, after

    wrap(roster.Roster, "_event_change", wrapper)


@flaw
def shows_what_is_not_ready() -> None:
    put(feed, "ready_instance", lambda instance: replace(known_instance(instance), is_ready=True))


@flaw
def takes_any_port() -> None:
    def take(instance: KnownInstance, port: str, revision: str = "") -> Endpoint | None:
        return endpoint(instance, port if port in instance.ports else next(iter(instance.ports)), revision)

    put(endpoint_list, "endpoint", take)


@flaw
def takes_no_node_for_a_host() -> None:
    change_instances(lambda kept: replace(kept, host="" if kept.host == kept.node else kept.host))


@flaw
def writes_no_brackets() -> None:
    put(Endpoint, "address", property(lambda self: f"{self.host}:{self.port}"))


@flaw
def knows_no_labels() -> None:
    change_instances(lambda kept: replace(kept, labels={}))


@flaw
def knows_no_weights() -> None:
    change_instances(lambda kept: replace(kept, weight=DEFAULT_WEIGHT))


@flaw
def saves_no_weights() -> None:
    wrap(saved, "_entry", lambda original, instance: original(replace(instance, weight=DEFAULT_WEIGHT)))


@flaw
def takes_small_messages_only() -> None:
    few = tuple(o for o in links.CHANNEL_OPTIONS if "receive" not in o[0])
    wrap(credentials.Credentials, "channel", lambda original, self, address: original(self, address, options=few))


@flaw
def fails_on_unknown_kinds() -> None:
    def change(_: WatchProgress, message: pb.WatchInstancesResponse) -> pb.WatchInstancesResponse:
        pb.WatchKind.Name(message.kind)
        return message

    change_messages(change)


@flaw
def starts_over_when_collapsed() -> None:
    def wrapper(original: Any, self: WatchProgress, message: pb.WatchInstancesResponse) -> Any:
        return self.start_over("collapsed") if message.collapsed else original(self, message)

    wrap(WatchProgress, "apply_message", wrapper)


# --- continuity ---------------------------------------------------------------------------------------------------


@flaw
def never_resumes() -> None:
    def wrapper(original: Any, self: Any) -> pb.WatchInstancesRequest:
        request: pb.WatchInstancesRequest = original(self)
        request.resume_token = ""
        return request

    wrap(watch.Watch, "_next_request", wrapper)


@flaw
def stops_at_the_end() -> None:
    def fail(self: Any, error: Exception, *_: Any) -> Any:
        raise error

    put(watch.Watch, "_after", fail)
    watch_once()


@flaw
def ignores_bookmarks() -> None:
    drop_kinds(pb.WATCH_KIND_BOOKMARK)


@flaw
def keeps_cut_parts() -> None:
    put(WatchProgress, "on_stream_end", lambda self: [])


@flaw
def keeps_ghosts() -> None:
    def wrapper(original: Any, self: roster.Roster, new: dict[Any, Any], *rest: Any) -> None:
        original(self, new, *rest)
        for key, kept in self.instances.items():
            new.setdefault(key, kept)

    wrap(roster.Roster, "_keep_some", wrapper)


@flaw
def empties_at_resync() -> None:
    forget_when(lambda self, item: self.instances if isinstance(item, Resync) else ())


@flaw
def resumes_after_resync() -> None:
    def wrapper(original: Any, self: WatchProgress, message: Any) -> Any:
        token = self.resume_token
        items = original(self, message)
        self.resume_token = token
        return items

    wrap(WatchProgress, "_resync", wrapper)


@flaw
def never_gives_up_a_token() -> None:
    def start_over(original: Any, self: WatchProgress, reason: str) -> Any:
        token = self.resume_token
        items = original(self, reason)
        self.resume_token = token
        return items

    def on_refusal(original: Any, self: feed.Feed, error: Any) -> None:
        token = self._token
        original(self, error)
        self._token = token

    wrap(WatchProgress, "start_over", start_over)
    wrap(feed.Feed, "_on_watch_refused", on_refusal)


# --- replicas -----------------------------------------------------------------------------------------------------


@flaw
def stays_with_one_replica() -> None:
    put(Replicas, "pick", lambda self, avoid=(): self._all[0])


@flaw
def forgets_when_away() -> None:
    forget_when(lambda self, item: self.instances if isinstance(item, Interrupted) else ())


@flaw
def gives_up_at_the_start() -> None:
    def wrapper(original: Any, self: Any, error: Exception, *rest: Any) -> Any:
        if not self._was_let_in:
            raise error
        return original(self, error, *rest)

    wrap(watch.Watch, "_after", wrapper)
    watch_once()


def change_patience(seconds: float) -> None:
    def wrapper(original: Any, self: Any, *args: Any) -> None:
        original(self, *args)
        self._settings = replace(self._settings, silence_limit_s=seconds, connect_timeout_s=seconds)

    wrap(watch.Watch, "__init__", wrapper)
    put(links.ReplicaLink, "_connect_timeout_s", property(lambda self: 3600.0, lambda self, _: None))


@flaw
def waits_for_ever() -> None:
    change_patience(3600.0)


@flaw
def has_no_patience() -> None:
    change_patience(0.3)


@flaw
def is_never_stale() -> None:
    put(followed.FeedHandle, "stale", property(lambda self: False))


@flaw
def never_waits() -> None:
    put(watch.Watch, "_wait_s", lambda self, *_: 0.001)


@flaw
def stops_at_a_refusal() -> None:
    watch_once()


# --- stores and locations -----------------------------------------------------------------------------------------


@flaw
def believes_everything() -> None:
    def believe(self: doubts.Doubts, source: pb.Source, *_: Any) -> bool:
        self._believe(source)
        return False

    put(doubts.Doubts, "is_snapshot_doubted", believe)


@flaw
def doubts_for_ever() -> None:
    put(doubts.Doubts, "believes", lambda self, source, now: source.cluster not in self._doubted)


@flaw
def doubts_every_epoch() -> None:
    def wrapper(original: Any, self: Any, source: pb.Source, count: int, known: int, now: float) -> Any:
        return original(self, source, 0, 1000, now)

    wrap(doubts.Doubts, "is_snapshot_doubted", wrapper)


@flaw
def waits_for_all_locations() -> None:
    done: set[str] = set()

    def wrapper(original: Any, self: Any, item: Synced, now: float) -> Any:
        done.update(source.cluster for source in item.sources)
        return [] if self._members - done else original(self, item, now)

    wrap(roster.Roster, "_on_synced", wrapper)


@flaw
def forgets_locations_away() -> None:
    def away(self: roster.Roster, item: Any) -> Iterable[Any]:
        sources = item.sources if isinstance(item, Bookmark) else ()
        names = {source.cluster for source in sources if source.error and not source.replica}
        return [key for key in self.instances if key[0] in names]

    forget_when(away)


# --- files --------------------------------------------------------------------------------------------------------


@flaw
def saves_nothing() -> None:
    async def nothing(self: Any) -> None:
        """Save nothing."""

    put(feed.Feed, "_save", nothing)


@flaw
def saves_at_the_end_only() -> None:
    put(feed.Feed, "_keep_saving", never_return())


@flaw
def fails_on_damaged_files() -> None:
    put(feed, "Unusable", ZeroDivisionError)


@flaw
def saves_what_it_has() -> None:
    wrap(feed.Feed, "start", lambda original, self: (original(self), self._dirty.set()))


@flaw
def sends_no_token() -> None:
    put(credentials.Credentials, "metadata", lambda self: ())


@flaw
def reads_files_once() -> None:
    put(credentials._Renewed, "current", lambda self: self._value)


@flaw
def trusts_nobody() -> None:
    put(credentials.Credentials, "channel", lambda self, address: grpc.aio.insecure_channel(address))


@flaw
def never_starts_over() -> None:
    put(watch.Watch, "_is_due", lambda self: False)
