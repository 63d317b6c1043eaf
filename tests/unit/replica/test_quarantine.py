"""Unreadable records: what the cache serves instead."""

from __future__ import annotations

import pytest

from hq.memory.cache import Cache
from hqpb.storage.v1 import storage_pb2
from store.port import Batch, KeyChange, Record
from tests.support.cache_entries import KEYS, Feed, mark, spec_value, status_value

RUBBISH = b"\xff\xff\xff"


def test_the_last_good_state_is_served_and_marked() -> None:
    feed = Feed()
    feed(spec=spec_value("a", text="good"), status=status_value(mark()))
    good = feed.cache.get("a")
    assert feed(spec=RUBBISH) == []
    assert feed(status=RUBBISH) == []
    assert feed.cache.get("a") is good
    assert feed.cache.quarantine.shown_older() == ("a",)
    assert [(q.kind, q.version, q.served_from_older) for q in feed.cache.quarantine.all()] == [
        ("spec", 2, True),
        ("status", 3, True),
    ]


def test_an_instance_without_a_good_record_is_not_shown() -> None:
    feed = Feed()
    assert feed(spec=RUBBISH, status=status_value(mark())) == []
    assert feed.cache.get("a") is None
    assert feed.cache.quarantine.shown_older() == ()
    assert not feed.cache.quarantine.all()[0].served_from_older


def test_a_bad_spec_of_a_new_uid_removes_the_old_instance() -> None:
    """In a difference over a compacted gap, a deletion and what followed it are one change."""
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark()))
    changes = [KeyChange(KEYS.spec("a"), RUBBISH, 5, 6), KeyChange(KEYS.status("a"), None, 0, 6)]
    (event,) = feed.cache.apply(Batch(6, changes), collapsed=True)
    assert event.after is None
    assert feed.cache.get("a") is None
    assert [(q.kind, q.version, q.served_from_older) for q in feed.cache.quarantine.all()] == [("spec", 6, False)]
    assert feed.cache.stored_versions("a") == (6, 0)


def test_a_bad_status_of_a_new_uid_is_not_replaced_by_that_of_the_old_one() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark()))
    changes = [KeyChange(KEYS.spec("a"), spec_value("a"), 5, 5), KeyChange(KEYS.status("a"), RUBBISH, 6, 6)]
    (event,) = feed.cache.apply(Batch(6, changes), collapsed=True)
    assert event.after is not None
    assert not event.after.traits.ready
    assert feed.cache.stored_versions("a") == (5, 6)


def test_the_status_of_an_old_uid_is_not_shown_once_a_bad_spec_is_mended() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark()))
    changes = [KeyChange(KEYS.spec("a"), RUBBISH, 5, 5), KeyChange(KEYS.status("a"), RUBBISH, 6, 6)]
    feed.cache.apply(Batch(6, changes), collapsed=True)
    feed.cache.apply(Batch(7, [KeyChange(KEYS.spec("a"), spec_value("a"), 5, 7)]))
    entry = feed.cache.get("a")
    assert entry is not None
    assert not entry.traits.ready


def test_a_status_waits_for_its_spec_to_become_readable() -> None:
    feed = Feed()
    feed(spec=RUBBISH, status=status_value(mark()))
    feed(spec=spec_value("a"))
    entry = feed.cache.get("a")
    assert entry is not None
    assert entry.traits.ready
    assert entry.status_version == 1


def test_a_good_status_is_applied_beside_a_bad_spec() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark(ready=False)))
    feed(spec=RUBBISH, status=status_value(mark(ready=True)))
    entry = feed.cache.get("a")
    assert entry is not None
    assert (entry.version, entry.status_version) == (1, 2)
    assert entry.traits.ready
    assert feed.cache.stored_versions("a") == (2, 2)


@pytest.mark.parametrize("remedy", [None, spec_value("a", text="new")], ids=["delete", "overwrite"])
def test_a_delete_or_a_good_overwrite_ends_the_quarantine(remedy: bytes | None) -> None:
    feed = Feed()
    feed(spec=spec_value("a"))
    feed(spec=RUBBISH)
    feed(spec=remedy)
    assert not feed.cache.quarantine.all()
    assert feed.cache.quarantine.shown_older() == ()
    assert (feed.cache.get("a") is None) == (remedy is None)


def test_an_instance_that_appears_beside_a_bad_status_is_marked() -> None:
    feed = Feed()
    feed(status=RUBBISH)
    assert feed.cache.quarantine.shown_older() == ()
    feed(spec=spec_value("a"))
    assert feed.cache.quarantine.shown_older() == ("a",)
    feed(spec=None)
    assert feed.cache.quarantine.shown_older() == ()


@pytest.mark.parametrize(
    "value",
    [
        RUBBISH,
        spec_value("another"),
        b"\x1a\x03" + RUBBISH,  # meta
        b"\x22\x03" + RUBBISH,  # spec
        b"\x1a\x04\x0a\x02\xc3\x28",  # meta.id is no UTF-8
    ],
)
def test_any_rubbish_in_a_spec_is_set_aside(value: bytes) -> None:
    feed = Feed()
    feed(spec=spec_value("a"))
    feed(spec=value)
    assert [q.kind for q in feed.cache.quarantine.all()] == ["spec"]


def test_marks_with_odd_contents_are_served() -> None:
    strange = mark("\u00fc", heard_ms=1 << 62)
    before_1970 = mark("r", heard_ms=-5)
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(strange, before_1970))
    entry = feed.cache.get("a")
    assert entry is not None
    assert entry.instance().status.heartbeat["\u00fc"].ToJsonString().startswith("9999-12-31")


def test_two_instances_that_share_a_uid_come_and_go() -> None:
    feed = Feed()
    for instance_id in ("a", "b"):
        feed.on(instance_id, spec=spec_value(instance_id, uid=0))
    feed.on("b", spec=None)
    feed.on("a", spec=None)
    assert len(feed.cache) == 0
    assert feed.cache.by_uid(0) is None


def test_keys_that_are_not_utf8_or_unknown_are_no_instances() -> None:
    cache = Cache(KEYS)
    cache.load([Record(KEYS.prefix + b"spec/\xff", spec_value("a"), 1, 1)])
    cache.apply(Batch(2, [KeyChange(KEYS.prefix + b"what/is/this", b"", 2, 2), KeyChange(KEYS.prefix, b"", 2, 2)]))
    assert len(cache) == 0


def test_a_secrets_record_that_cannot_be_read_is_named_until_it_is_put_right() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark()))
    descriptor = storage_pb2.RevisionSecrets(id="r", descriptor=[RUBBISH])
    for broken in (RUBBISH, storage_pb2.SecretsRecord(revision=[descriptor]).SerializeToString()):
        feed(secrets=broken)
        assert [(q.kind, q.rest) for q in feed.cache.quarantine.all()] == [("secrets", "a")]
        assert feed.cache.quarantine.shown_older() == ()
    feed(secrets=storage_pb2.SecretsRecord().SerializeToString())
    assert feed.cache.quarantine.all() == []
