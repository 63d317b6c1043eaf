"""The file of a checkpoint: what was put into it comes back, and anything else is refused and costs only time."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hq import checkpoint as files
from hq import keys as k
from hq.memory.cache import Cache
from hq.memory.entry import Entry, Event
from hq.memory.history import History, VersionEvents, WatchedEvent
from store.kept import NotKept, footing_of
from store.port import Record
from tests.support.cache_entries import Feed, mark, spec_value, status_value

PREFIX = k.HqKeys().prefix
FOOTING = footing_of(Record(b"/hq/v1/ops/x", b"a secret", 1, 1), 1, (b"/hq/v1/ops/y", 1))


def feed_of(*ids: str) -> Feed:
    """A cache with these instances; the first one has a heartbeat."""
    feed = Feed()
    feed.cache.epoch = "e1"
    feed.cache.advance(1)
    for uid, each in enumerate(ids, 1):
        feed.on(each, spec=spec_value(each, uid=uid), status=status_value(mark(heard_ms=1_000)))
    first = feed.cache.get(ids[0]) if ids else None
    if first is not None:
        first.heartbeat(0, 5_000, "hearer")
    return feed


def found_at(path: Path) -> Iterator[None]:
    found = files.find_checkpoint(path, Cache(k.HqKeys()), History(1 << 20), PREFIX)
    assert found is not None
    return found.restore()


def restored(path: Path) -> tuple[files.Checkpoint, Cache]:
    cache = Cache(k.HqKeys())
    found = files.find_checkpoint(path, cache, History(1 << 20), PREFIX)
    if found is None:
        raise NotKept("nothing that could be of this store")
    list(found.restore())
    return found, cache


def test_instances_come_back_with_their_heartbeats_from_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    before, path = feed_of("a", "b", "c").cache, tmp_path / "checkpoint"
    files.save(path, before, History(1 << 20), PREFIX, FOOTING)
    found, cache = restored(path)
    assert (found.epoch, found.version, found.footing, found.key_count) == ("e1", before.version, FOOTING, 6)
    assert {e.traits.id: e.instance() for e in cache.entries()} == {e.traits.id: e.instance() for e in before.entries()}
    assert cache.stored_bytes == before.stored_bytes
    heard = cache.get("a")
    assert heard is not None
    assert (heard.marks[0].heard_ms, heard.marks[0].heard_by) == (5_000, "hearer")
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"secret" not in path.read_bytes()


def test_instances_that_come_back_are_spared_from_garbage_collection(tmp_path: Path) -> None:
    """Scanning a million of them twice would take a fifth of the start."""
    path = tmp_path / "checkpoint"
    files.save(path, feed_of(*(f"i{number}" for number in range(300))).cache, History(1 << 20), PREFIX, FOOTING)
    looks = list[str]()
    gc.callbacks.append(lambda phase, _: looks.append(phase))
    thresholds = gc.get_threshold()
    gc.set_threshold(300, 4, 50_000)  # entries are twice as many objects
    try:
        restoring = found_at(path)
        gc.collect()
        looks.clear()
        list(restoring)
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    assert len(looks) <= 2  # once, between two parts


def test_history_comes_back_so_that_watches_can_resume_as_before(tmp_path: Path) -> None:
    path, feed, before = tmp_path / "checkpoint", feed_of("a"), History(1 << 20)
    before.reset(3)
    for version, entry in ((4, feed.cache.get("a")), (5, None)):
        before.add(VersionEvents(version, [WatchedEvent(Event(version, feed.cache.get("a"), entry))]))
    files.save(path, feed.cache, before, PREFIX, FOOTING)
    history = History(1 << 20)
    found = files.find_checkpoint(path, Cache(k.HqKeys()), history, PREFIX)
    assert found is not None
    list(found.restore())
    found.finish()
    assert history.complete_after == 3
    assert history.since(2, 1) is None
    told, expected = history.since(3, 1 << 20), before.since(3, 1 << 20)
    assert told is not None
    assert expected is not None
    assert [(s.version, [(e.put, e.encoded_removal(), e.before, e.after) for e in s.events]) for s in told] == [
        (s.version, [(e.put, e.encoded_removal(), e.before, e.after) for e in s.events]) for s in expected
    ]


def test_a_checkpoint_without_instances_can_be_read(tmp_path: Path) -> None:
    files.save(tmp_path / "checkpoint", feed_of().cache, History(1 << 20), PREFIX, FOOTING)
    assert not len(restored(tmp_path / "checkpoint")[1])


def test_a_file_with_any_byte_changed_or_lacking_or_too_many_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    files.save(path, feed_of("a", "b").cache, History(1 << 20), PREFIX, FOOTING)
    good = path.read_bytes()
    spoiled = [good[:at] + bytes((good[at] ^ 0x10,)) + good[at + 1 :] for at in range(len(good))]
    for data in (*spoiled, *(good[:at] for at in range(len(good))), good + b"x", good + good, b"", b"\n" * 9):
        path.write_bytes(data)
        with pytest.raises(NotKept):
            restored(path)


def test_a_file_that_is_replaced_after_its_head_was_read_is_refused(tmp_path: Path) -> None:
    path, feed = tmp_path / "checkpoint", feed_of("a")
    files.save(path, feed.cache, History(1 << 20), PREFIX, FOOTING)
    found = files.find_checkpoint(path, Cache(k.HqKeys()), History(1 << 20), PREFIX)
    assert found is not None
    feed.on("b", spec=spec_value("b", uid=2))
    files.save(path, feed.cache, History(1 << 20), PREFIX, FOOTING)
    with pytest.raises(NotKept, match="replaced"):
        list(found.restore())
    path.unlink()
    with pytest.raises(NotKept, match="No such file"):
        list(found.restore())


def test_a_file_of_another_prefix_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files.save(tmp_path / "checkpoint", feed_of("a").cache, History(1 << 20), b"/other/", FOOTING)
    assert files.find_checkpoint(tmp_path / "checkpoint", Cache(k.HqKeys()), History(1 << 20), PREFIX) is None
    assert "is of prefix /other/: reading everything" in caplog.text


@pytest.mark.parametrize("kind", ["a FIFO", "a link", "a directory", "others may write it"])
def test_a_file_that_others_may_write_is_not_read(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    good, path = tmp_path / "good", tmp_path / "checkpoint"
    files.save(good, feed_of("a").cache, History(1 << 20), PREFIX, FOOTING)
    if kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a link":
        path.symlink_to(good)
    elif kind == "a directory":
        path.mkdir()
    else:
        good.rename(path)
        path.chmod(0o666)
    assert files.find_checkpoint(path, Cache(k.HqKeys()), History(1 << 20), PREFIX) is None
    assert "cannot be read: reading everything" in caplog.text


def test_instances_in_the_form_of_another_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, kept = tmp_path / "checkpoint", Entry.as_tuple
    monkeypatch.setattr(Entry, "as_tuple", lambda self: (*kept(self), "a field more"))
    files.save(path, feed_of("a").cache, History(1 << 20), PREFIX, FOOTING)
    with pytest.raises(NotKept, match="contents cannot be decoded"):
        restored(path)


def test_history_in_the_form_of_another_version_is_refused_at_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure when it is used would end the follower, at this start and at the next."""
    path, feed, history, kept = tmp_path / "checkpoint", feed_of("a"), History(1 << 20), WatchedEvent.as_tuple
    history.add(VersionEvents(4, [WatchedEvent(Event(4, None, feed.cache.get("a")))]))
    monkeypatch.setattr(WatchedEvent, "as_tuple", lambda self: (*kept(self), "a field more"))
    files.save(path, feed.cache, history, PREFIX, FOOTING)
    with pytest.raises(NotKept, match="contents cannot be decoded"):
        restored(path)


def test_blocks_of_two_files_do_not_make_a_valid_one(tmp_path: Path) -> None:
    """Two processes may have been given the same directory."""
    path = tmp_path / "checkpoint"
    halves = []
    for service in ("s", "t"):
        feed = feed_of("a")
        feed.on("a", spec=spec_value("a", service))
        files.save(path, feed.cache, History(1 << 20), PREFIX, FOOTING)
        halves.append(path.read_bytes())
    one, two = halves
    assert len(one) == len(two)
    for at in range(1, len(one)):
        path.write_bytes(one[:at] + two[at:])
        if path.read_bytes() not in halves:
            with pytest.raises(NotKept):
                restored(path)


@pytest.mark.parametrize("why", ["quarantine", "a status without spec", "nothing applied"])
def test_a_state_that_a_file_cannot_hold_is_not_written_and_the_old_file_is_removed(tmp_path: Path, why: str) -> None:
    path, feed = tmp_path / "checkpoint", feed_of("a")
    files.save(path, feed.cache, History(1 << 20), PREFIX, FOOTING)
    if why == "quarantine":
        feed.on("a", spec=b"\xff\xff\xff")
    elif why == "a status without spec":
        feed.on("b", status=status_value(mark()))
    files.save(path, feed.cache, History(1 << 20), PREFIX, None if why == "nothing applied" else FOOTING)
    assert not path.exists()


def test_a_failed_write_is_logged_and_leaves_no_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no directory")
    files.save(tmp_path / "file" / "checkpoint", feed_of("a").cache, History(1 << 20), PREFIX, FOOTING)
    assert "no checkpoint at" in caplog.text

    def is_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hq.checkpoint._write", is_full)
    with caplog.at_level(logging.WARNING):
        files.save(tmp_path / "checkpoint", feed_of("a").cache, History(1 << 20), PREFIX, FOOTING)
    assert "No space left on device" in caplog.text
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
