"""Entries that recorders have not read yet are handed out in answers of bounded size, and not kept for ever."""

from __future__ import annotations

import pytest
from google.protobuf import wrappers_pb2

from control.followers import EntryFollower

Word = wrappers_pb2.StringValue


async def test_large_entries_are_spread_over_answers_small_enough_to_send() -> None:
    """Otherwise the tasks of one owner could make an answer too large to send, and nothing would be recorded."""
    follower = EntryFollower([Word(value="x" * 900_000) for _ in range(5)] + [Word(value="y" * 3_000_000)])
    answers = [len(await follower.take(1_000, 0.1)) for _ in range(5)]
    assert answers == [2, 2, 1, 1, 0]


async def test_a_follower_with_too_much_unread_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("control.followers.MOST_UNREAD_BYTES", 1_000)
    follower = EntryFollower([Word(value="x" * 5_000)])
    follower.add([Word(value="y" * 900)])
    assert not follower.is_over, "what it began with may be more"
    follower.add([Word(value="z" * 200)])
    assert follower.is_over
