"""When work may begin: hours, margins, freezes, several rules at once, and the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cms.ledger.calendar import Calendar, CalendarRule, Freeze, Opening, Window, meeting

WEEK = frozenset(range(7))
MON_FRI = frozenset(range(5))


def at(text: str) -> float:
    """Unix time of a moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def opens(rule: CalendarRule, now: str, *, is_repair: bool = False) -> str:
    """When it opens, in UTC; "now" or "never"."""
    opening = rule.opening(at(now), is_repair=is_repair)
    if opening.at is None:
        return "never"
    return "now" if opening.at == at(now) else datetime.fromtimestamp(opening.at, UTC).strftime("%Y-%m-%dT%H:%M")


def night(days: frozenset[int] = MON_FRI, begin: int = 22 * 60, end: int = 6 * 60, **more: object) -> CalendarRule:
    return CalendarRule("night", zone="Europe/Berlin", windows=(Window(days, begin, end),), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-26T20:59", "2026-11-26T21:00"),  # Thursday 22:00 in Berlin
        ("2026-11-26T21:00", "now"),
        ("2026-11-27T04:59", "now"),  # Friday morning, of Thursday's window
        ("2026-11-28T04:59", "now"),  # Saturday morning, of Friday's window
        ("2026-11-28T05:00", "2026-11-30T21:00"),  # the weekend is closed
        ("2026-11-28T22:00", "2026-11-30T21:00"),
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins(now: str, expected: str) -> None:
    assert opens(night(), now) == expected


def test_nothing_begins_shortly_before_the_end() -> None:
    rule = night(margin_s=3600)
    assert opens(rule, "2026-11-27T03:59") == "now"
    assert opens(rule, "2026-11-27T04:00") == "2026-11-27T21:00"
    assert opens(night(begin=60, end=120, margin_s=3600), "2026-11-27T04:00") == "never"


@pytest.mark.parametrize(
    ("began", "now", "goes_on"),
    [
        ("2026-11-26T21:30", "2026-11-27T04:30", True),  # in the margin
        ("2026-11-26T21:30", "2026-11-27T05:59", True),  # the window ended an hour ago
        ("2026-11-26T21:30", "2026-11-27T06:01", False),
        ("2026-11-27T05:30", "2026-11-27T05:40", False),  # it cannot have begun then
        ("2026-11-27T09:00", "2026-11-27T05:40", False),  # nor later than now
        ("2026-11-26T21:30", "2026-11-28T05:59", True),  # of the next night
        ("2026-11-26T21:30", "2026-11-29T12:00", False),
    ],
)
def test_an_order_that_began_in_a_window_may_outlast_it_by_the_overrun(began: str, now: str, goes_on: bool) -> None:
    rule = night(margin_s=3600, overrun_s=3600)
    assert rule.may_go_on(at(began), at(now)) is goes_on
    calendar = Calendar((rule, CalendarRule("other", service="mail", windows=(Window(frozenset(), 0, 60),))))
    assert (not calendar.opening(at(now), ["web"], [], began=at(began)).why) is goes_on
    assert calendar.opening(at(now), ["web", "mail"], [], began=at(began)).at is None  # it has to fit all windows
    assert calendar.opening(at(now), ["web"], []).why


def test_a_freeze_stops_an_order_that_began_and_without_an_overrun_so_does_the_end_of_its_window() -> None:
    began, now = at("2026-11-26T21:30"), at("2026-11-26T23:30")
    frozen = night(freezes=(Freeze(at("2026-11-26T23:00"), at("2026-11-27T23:00"), "year end"),), overrun_s=3600)
    assert not frozen.may_go_on(began, now)
    assert Calendar((frozen,)).opening(now, [], [], began=began).why == "freeze of night: year end"
    assert not night().may_go_on(began, at("2026-11-27T05:01"))
    assert not CalendarRule("none", overrun_s=3600).may_go_on(began, now)  # no windows: nothing to outlast


def test_windows_that_touch_count_as_one() -> None:
    always = CalendarRule("always", windows=(Window(WEEK, 0, 24 * 60),), margin_s=3600)
    assert opens(always, "2026-11-26T23:30") == "now"


@pytest.mark.parametrize(
    ("begin", "end", "now", "expected"),
    [
        # 29 March 2026, 02:00 becomes 03:00 in Berlin (01:00 UTC).
        (90, 150, "2026-03-29T00:29", "2026-03-29T00:30"),  # 01:30 to 02:30: only its first half hour exists
        (90, 150, "2026-03-29T00:59", "now"),
        (90, 150, "2026-03-29T01:00", "2026-03-29T23:30"),
        (120, 180, "2026-03-29T00:00", "2026-03-30T00:00"),  # 02:00 to 03:00: not on that day
        (150, 240, "2026-03-29T00:59", "2026-03-29T01:00"),  # 02:30 to 04:00: from when the clocks have changed
        (150, 240, "2026-03-29T01:59", "now"),
        (150, 240, "2026-03-29T02:00", "2026-03-30T00:30"),
        # 25 October 2026, 03:00 becomes 02:00 again (01:00 UTC).
        (120, 180, "2026-10-24T23:59", "2026-10-25T00:00"),  # 02:00 to 03:00 lasts two hours
        (120, 180, "2026-10-25T01:59", "now"),
        (120, 180, "2026-10-25T02:00", "2026-10-26T01:00"),
        (60, 150, "2026-10-25T00:29", "now"),  # 01:00 to 02:30 ends when it is 02:30 first
        (60, 150, "2026-10-25T00:30", "2026-10-26T00:00"),
        (150, 240, "2026-10-25T00:30", "now"),  # 02:30 to 04:00 begins when it is 02:30 first
    ],
)
def test_windows_open_as_expected_on_days_on_which_the_clocks_change(
    begin: int, end: int, now: str, expected: str
) -> None:
    assert opens(night(WEEK, begin, end), now) == expected


def test_a_freeze_has_an_end_and_spares_repairs_unless_it_says_otherwise() -> None:
    freeze = Freeze(at("2026-12-20T00:00"), at("2027-01-02T23:00"), "year end")
    rule = night(freezes=(freeze,))
    assert opens(rule, "2026-12-21T21:30") == "2027-01-04T21:00"  # the first night after it
    assert rule.opening(at("2026-12-21T21:30")).why == "freeze of night: year end"
    assert opens(rule, "2026-12-21T12:00", is_repair=True) == "now"
    assert (
        opens(night(freezes=(freeze._replace(repairs=True),)), "2026-12-21T12:00", is_repair=True) == "2027-01-02T23:00"
    )


def test_work_under_two_rules_needs_a_window_of_both() -> None:
    early = CalendarRule("early", service="web", windows=(Window(WEEK, 0, 180),))
    late = CalendarRule("late", project="db", windows=(Window(WEEK, 120, 240),))
    never = CalendarRule("noon", windows=(Window(WEEK, 720, 780),), service="mail")
    calendar = Calendar((early, late, never))
    now = at("2026-11-26T05:00")
    assert calendar.opening(now, ["web"], []).at == at("2026-11-27T00:00")
    assert calendar.opening(now, ["web"], ["db"]).at == at("2026-11-27T02:00")
    assert calendar.opening(now, ["other"], []).at == now
    impossible = calendar.opening(now, ["web", "mail"], [])
    assert impossible == (None, "the windows early, noon never meet", "early")
    assert calendar.opening(now, ["web", "mail"], []) is impossible  # not computed for every task


def test_windows_of_two_zones_may_meet_in_summer_only() -> None:
    berlin = CalendarRule("berlin", windows=(Window(WEEK, 120, 180),), zone="Europe/Berlin")
    utc = CalendarRule("utc", windows=(Window(WEEK, 0, 60),))
    assert meeting([berlin, utc], at("2026-11-26T05:00")).at == at("2027-03-29T00:00")


def test_a_search_for_windows_that_never_meet_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred windows of one service with a hundred minutes each kept the CMS from deciding anything for minutes."""
    looks = 0
    found = CalendarRule.opening

    def counted(rule: CalendarRule, now: float, *, is_repair: bool = False) -> Opening:
        nonlocal looks
        looks += 1
        return found(rule, now, is_repair=is_repair)

    monkeypatch.setattr(CalendarRule, "opening", counted)
    rules = [
        CalendarRule(
            f"r{rule}",
            zone=("UTC", "Asia/Tokyo")[rule % 2],
            windows=tuple(Window(WEEK, minute, minute + 1) for minute in range(2 * rule, 1_400, 14)),
        )
        for rule in range(4)
    ]
    assert meeting(rules, at("2026-11-26T20:00")).why == "window r0 is closed"
    assert looks <= 2_000 * len(rules)


def test_windows_that_meet_after_very_many_openings_are_not_said_to_meet_never() -> None:
    halves = tuple(Window(WEEK, 120 * n, 120 * n + 30) for n in range(12))
    rules = [CalendarRule("utc", windows=halves), CalendarRule("berlin", windows=halves, zone="Europe/Berlin")]
    now, looks = at("2026-11-01T00:00"), 0
    while (opening := meeting(rules, now)).why:
        assert opening.at is not None
        assert opening.at > now
        now, looks = opening.at, looks + 1
    assert (now, looks) == (at("2027-03-28T02:00"), 2)
