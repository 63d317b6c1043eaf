"""Who may speak for which instances, and when a node's supervisors report."""

from __future__ import annotations

import pytest

from instancectl.hostagent.gathering import ReportRhythm
from instancectl.hostagent.speakers import Speakers
from instancectl.settings import BadSpeaker, Speaker, parse_speaker
from serving.clock import ManualClock

NAMES = {7: "web", 8: "mail", 9: "we*", 50: "agent"}


def speakers(*words: str) -> Speakers:
    return Speakers([parse_speaker(word) for word in words], own_uid=50, name=lambda uid: NAMES.get(uid, ""))


@pytest.mark.parametrize(
    ("words", "uid", "instance", "may"),
    [
        ((), 0, "web-1", True),
        ((), 50, "web-1", True),
        ((), 7, "web-1", False),
        (("web=web-*",), 7, "web-1", True),
        (("web=web-*",), 7, "mail-1", False),
        (("web=web-*",), 8, "web-1", False),
        (("web=web-*", "mail=mail-1,mail-2"), 8, "mail-2", True),
        (("*={user}-*",), 7, "web-1", True),
        (("*={user}-*",), 8, "web-1", False),
        (("*={user}",), 7, "web", True),
        (("*={user}-*",), 9, "web-1", False),  # a name that would be a pattern
        (("*=*",), 99, "web-1", False),  # a number without a name
        (("*=*",), -1, "web-1", False),  # nobody knows who
    ],
)
def test_a_user_speaks_only_for_its_own_instances(words: tuple[str, ...], uid: int, instance: str, may: bool) -> None:
    assert speakers(*words).may(uid, instance) is may


@pytest.mark.parametrize("word", ["web", "=web-1", "web=", "web= , "])
def test_a_malformed_speaker_is_refused_with_an_example(word: str) -> None:
    with pytest.raises(BadSpeaker, match="USER=INSTANCE"):
        parse_speaker(word)


def test_blanks_around_words_do_not_matter() -> None:
    assert parse_speaker(" web = a, b ") == Speaker("web", ("a", "b"))


def test_all_supervisors_of_a_node_are_asked_to_report_at_one_moment() -> None:
    clock = ManualClock()
    rhythm = ReportRhythm(clock)
    assert rhythm.next_s(170.0) == 170.0
    clock.advance(100.0)
    assert rhythm.next_s(175.0) == pytest.approx(70.0)
    clock.advance(70.0)
    assert rhythm.next_s(165.0) == 165.0


def test_nobody_is_asked_to_report_later_than_hq_says() -> None:
    clock = ManualClock()
    rhythm = ReportRhythm(clock)
    rhythm.next_s(170.0)
    assert rhythm.next_s(3.0) == 3.0, "the interval is another one now"
    assert rhythm.next_s(3.0) == 3.0


def test_supervisors_that_report_rarely_are_not_asked_as_often_as_the_busy_ones() -> None:
    clock = ManualClock()
    rhythm = ReportRhythm(clock)
    rhythm.next_s(170.0)
    clock.advance(1.0)
    assert rhythm.next_s(19.0) == 19.0
    assert rhythm.next_s(170.0) == 169.0
