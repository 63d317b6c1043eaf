"""What pages say: locations that are silent, what is below its floor and why, times, addresses."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from console.backends.asking import Trouble
from console.site.shield import Shield
from console.site.visits import BadPageRequest
from console.views import problems, readiness
from console.views.instances import InstanceRow, row
from console.views.locations import location_problems, locations
from console.views.urls import url
from console.views.words import number, plural, relative, span, when
from hqpb.v1 import admin_pb2
from hqpb.v1 import instance_pb2 as ipb
from hqpb.v1 import service_pb2 as pb

SOURCES = [
    pb.Source(cluster="east", replica="r1"),
    pb.Source(cluster="west", error="no replica answers"),
    pb.Source(cluster="north", replica="r2", stale=True, error="lost its store"),
    pb.Source(cluster="south", replica="r3", trust=pb.EPOCH_TRUST_DOUBTED, error="holds far less"),
]


def test_every_location_stands_on_the_page_with_the_age_of_its_answer() -> None:
    found = locations(pb.CountInstancesResponse(sources=SOURCES))
    assert [(one.name, one.state) for one in found] == [
        ("east", "good"),
        ("west", "silent"),
        ("north", "old"),
        ("south", "old"),
    ]


def test_the_age_of_a_silent_location_is_shown_in_minutes() -> None:
    west = pb.Source(cluster="west", error="no replica answers; unreachable for 3 s, not called again")
    texts = []
    for seconds in (1, 59, 185):
        west.staleness.seconds = seconds
        texts.append(locations(pb.CountInstancesResponse(sources=[west]))[0].text)
    assert texts[0] == texts[1]
    assert "for under a minute" in texts[0]
    assert "has not answered for 3 min" in texts[2]


def test_silent_stale_and_doubted_locations_are_problems() -> None:
    titles = [one.title for one in location_problems(SOURCES, 0.0)]
    assert titles == [
        "location west is silent",
        "location north is stale",
        "location south may have lost its instances",
    ]


def test_an_hq_that_does_not_answer_is_a_silent_location() -> None:
    assert locations(Trouble("HQ", "away", "HQ does not answer"))[0].state == "silent"


@pytest.mark.parametrize(
    ("total", "ready", "floor", "is_below"),
    [
        (10, 9, None, False),
        (10, 8, None, True),
        (1, 0, None, True),
        (1, 1, None, False),
        (4, 3, 4, True),
        (0, 0, None, False),
    ],
)
def test_a_service_lacks_instances_below_its_floor(
    total: int, ready: int, floor: int | None, *, is_below: bool
) -> None:
    floors = {"web": floor} if floor is not None else {}
    found = readiness.lacking([pb.InstanceCount(key="web", total=total, ready=ready)], floors, {})
    assert bool(found) == is_below


def test_the_most_common_reason_stands_first_with_one_of_its_messages() -> None:
    def row(reason: str, message: str, node: str) -> InstanceRow:
        return InstanceRow("i", "/", "web", "c", node, "bad", reason, message, None, [], "r", [], None)

    rows = [row("exited", "code 1", "n1"), row("timed out", "", "n2"), row("exited", "code 2", "n3")]
    said = "2 instances: exited: code 1; 1 instance: timed out. On n1, n2, n3."
    assert readiness.common_reasons(rows, [], 3) == said
    assert readiness.common_reasons(rows[:1] * 2, [], 2).endswith("All on n1.")


def _row(reason: str, message: str = "", node: str = "n1", wanted: str = "r") -> InstanceRow:
    return InstanceRow("i", "/", "web", "c", node, "bad", reason, message, None, [], wanted, [], None)


def test_reasons_are_counted_over_all_instances_and_not_over_the_few_that_were_looked_at() -> None:
    rows = [_row("crashed", "code 1", f"n{n % 9}") for n in range(50)]
    counts = [
        pb.InstanceCount(key="Crashed", total=660),
        pb.InstanceCount(key="NothingReported", total=7),
        pb.InstanceCount(key="NotWantedReady", total=5, not_wanted=5),
    ]
    said = readiness.common_reasons(rows, counts, 667)
    assert said.startswith("660 instances: crashed: code 1; 7 instances: never reported. For example on n0, n1,")
    sampled = readiness.common_reasons(rows, [], 667)
    assert sampled.startswith("of 50 instances that were looked at, 50 instances: crashed: code 1.")


def test_very_many_instances_not_ready_are_a_problem_even_above_the_floor_unless_tasks_hold_them() -> None:
    web = pb.InstanceCount(key="web", total=2_000, ready=1_333)
    floors = {"web": 1_200}
    assert readiness.lacking([web], floors, {}) == [web]
    assert readiness.lacking([web], floors, {"web": 600}) == []
    [found] = readiness.service_problems([web], floors, {"web": "667 instances: crashed."}, {}, [])
    assert (found.level, found.title) == ("bad", "web: 1\u202f333 of 2\u202f000 instances ready")
    assert found.why == "667 instances are away, though its floor of 1\u202f200 holds. 667 instances: crashed."


def test_stopped_instances_are_not_lacking_and_not_counted_for_the_rest() -> None:
    stopped = pb.InstanceCount(key="web", total=4, ready=0, not_wanted=4)
    half = pb.InstanceCount(key="api", total=8, ready=4, not_wanted=4)
    worse = pb.InstanceCount(key="db", total=8, ready=1, not_wanted=4)
    assert readiness.lacking([stopped, half, worse], {"web": 3, "api": 7}, {}) == [worse]
    [found] = readiness.service_problems([worse], {}, {}, {}, [])
    assert found.title == "db: 1 of 4 instances ready"


def test_a_few_instances_not_ready_above_the_floor_are_one_note_or_a_warning_if_any_crashes() -> None:
    few = [pb.InstanceCount(key=f"s{n}", total=20, ready=19) for n in range(3)]
    [calm] = readiness.scattered_problem(few, "3 instances: starting.", is_crashing=False)
    assert calm.title == "3 instances are not ready in 3 services above the floor"
    assert (calm.level, calm.href) == ("note", "/instances?readiness=not-ready")
    [crashing] = readiness.scattered_problem(few, "3 instances: crashed.", is_crashing=True)
    assert crashing.level == "warn"


@pytest.mark.parametrize(
    ("waiting", "age_s", "level", "title", "asks"),
    [
        (50, 20, "warn", "50 instances are silent in east; HQ still counts them ready (guard)", False),
        (1, 90, "bad", "1 instance is silent in east; HQ still counts it ready (guard)", True),
        (0, 90, "note", "the guard of east holds, and nothing waits to expire", False),
    ],
)
def test_a_guard_that_holds_for_a_minute_asks_people_to_act(
    waiting: int, age_s: int, level: str, title: str, *, asks: bool
) -> None:
    answer = admin_pb2.GetGuardResponse()
    answer.guard.holding, answer.guard.waiting, answer.guard.since.seconds = True, waiting, 10_000 - age_s
    [found] = problems.guard_problems([("east", answer)], 10_000)
    assert (found.level, found.title, "release the guard" in found.next) == (level, title, asks)


def test_the_worst_problem_stands_first_and_of_equals_the_oldest() -> None:
    made = [
        problems.Problem(level, title, "", since_s=since)
        for level, title, since in [("note", "c", 1), ("bad", "b", 9), ("bad", "a", 5), ("warn", "d", 1)]
    ]
    assert [one.title for one in problems.sorted_problems(made)] == ["a", "b", "d", "c"]


def test_problems_of_one_cause_are_folded_into_its_problem() -> None:
    rack, other = frozenset({"n1", "n2", "n3"}), frozenset({"n3", "n9"})
    made = [
        problems.Problem("note", "work on switch s1", "", group="s1"),
        problems.Problem("bad", "cart lacks", "", on=other),
        problems.Problem("bad", "web lacks", "", on=frozenset({"n1", "n2"})),
        *(problems.Problem("warn", f"reboot of n{n}", "no room", group="s1") for n in (5, 4)),
        problems.Problem("warn", "another reboot", ""),
        problems.Problem("bad", "rack r1 is dark", "", place=rack),
    ]
    found = problems.sorted_problems(problems.fold_causes(made))
    assert [(one.level, one.title, [each.title for each in one.holds]) for one in found] == [
        ("bad", "cart lacks", []),  # not all of it is in the rack
        ("bad", "rack r1 is dark", ["web lacks"]),
        ("warn", "another reboot", []),
        ("warn", "work on switch s1", ["reboot of n4", "reboot of n5"]),
    ]


def _move(name: str, at_s: int, *, ready: bool) -> admin_pb2.Transition:
    made = admin_pb2.Transition(instance_id=name, node_name="n1", revision_id="r1", ready=ready)
    made.time.seconds = at_s
    return made


def test_expiries_that_have_all_recovered_ask_for_nothing() -> None:
    moves = [_move("a", 9_500, ready=True), _move("b", 9_000, ready=False), _move("a", 9_000, ready=False)]
    [current] = problems.expiry_problem(moves, 10_000)
    assert (current.level, current.next) == ("warn", "Is a node down, or its network?")
    assert "1 instance is ready again" in current.why
    [cut] = problems.expiry_problem(moves, 10_000, is_cut=True)
    assert cut.title == "at least 2 expiries in the last hour, on 1 node"
    [over] = problems.expiry_problem([_move("b", 9_600, ready=True), *moves], 10_000)
    assert (over.level, over.next, over.since_s) == ("note", "", 9_600)
    assert over.title == "2 expiries in the last hour, on 1 node: all are ready again"


def test_expiries_in_a_failing_rack_are_folded_into_its_problem() -> None:
    rack = problems.Problem("bad", "rack r1 fails together", "", place=frozenset({"n1", "n2"}))
    expiries = problems.expiry_problem([_move("a", 9_500, ready=False)], 10_000)
    [found] = problems.fold_causes([*expiries, rack])
    assert [one.title for one in found.holds] == ["1 expiry in the last hour, on 1 node"]


def test_instances_in_a_silent_location_are_not_called_lacking() -> None:
    shop = pb.InstanceCount(key="shop", total=8, ready=8)
    floors, totals = {"shop": 11}, {"shop": 12}
    [found] = readiness.service_problems([shop], floors, {}, totals, ["west"])
    assert found.title == "shop: 8 of 12 instances known to be ready; west (4) does not answer"
    assert (found.level, found.bar) == ("warn", (8, 12, 11))
    [all_heard] = readiness.service_problems([shop], floors, {}, totals, [])
    assert all_heard.title == "shop: 8 of 8 instances ready"


def test_a_silent_instance_says_since_when_and_for_how_long() -> None:
    one = ipb.Instance()
    one.meta.id = "web-1"
    one.spec.revision.add(id="r1", target=ipb.REVISION_TARGET_READY)
    one.status.revision.add(id="r1").ready.CopyFrom(
        ipb.Condition(status=ipb.CONDITION_STATUS_FALSE, reason="HeartbeatTimeout", message="no report for 11 s")
    )
    one.status.last_heartbeat_time.seconds = 12_564
    shown = row(one, 12_564 + 190)
    assert (shown.reason, shown.message) == ("heartbeat timeout", "silent since 03:29:24 (3 min)")
    assert shown.heard is None
    assert row(one, 12_564 + 20).message == "silent since 03:29:24"


def test_an_unheard_agent_is_shown_instead_of_its_last_report() -> None:
    one = ipb.Instance()
    one.spec.revision.add(id="r1", target=ipb.REVISION_TARGET_READY)
    one.status.revision.add(id="r1").ready.CopyFrom(
        ipb.Condition(status=ipb.CONDITION_STATUS_FALSE, reason="Exited", message="exit code 1")
    )
    one.status.agent.status = ipb.CONDITION_STATUS_TRUE
    assert row(one).reason == "exited"
    agent = ipb.Condition(status=ipb.CONDITION_STATUS_FALSE, reason="NeverReported", message="no agent has begun")
    one.status.agent.CopyFrom(agent)
    assert (row(one).state, row(one).reason, row(one).message) == ("bad", "never reported", "no agent has begun")


def test_times_say_both_how_long_ago_and_when() -> None:
    text = str(when(Timestamp(seconds=1_000_000), 1_000_000 + 200))
    assert "3 min ago" in text
    assert "13:46:40" in text
    assert 'datetime="1970-01-12T13:46:40Z"' in text
    assert "1970" not in str(when(None, 0))
    assert when(1_000, 1_010, runs=True) == when(1_005, 1_015, runs=True)  # a page with heartbeats rests


def test_a_time_that_an_agent_made_up_breaks_no_page() -> None:
    assert "9999-12-31 23:59" in str(when(Timestamp(seconds=253_402_300_799, nanos=999_999_999), 1_000_000))
    assert "ago" in str(when(Timestamp(seconds=-62_135_596_800), 1_000_000))


@pytest.mark.parametrize(
    ("length_s", "told"), [(5, "5 s"), (90, "1 min"), (7_500, "2 h 5 min"), (90_000, "1 d"), (36_000, "10 h")]
)
def test_a_span_is_shown_in_few_units(length_s: float, told: str) -> None:
    assert span(length_s) == told


def test_numbers_and_words() -> None:
    assert number(1234567) == "1\u202f234\u202f567"
    assert plural(1, "expiry") == "1 expiry"
    assert plural(2, "expiry") == "2 expiries"
    assert relative(100, 130) == "just now"
    assert relative(4_000, 100) == "in 1 h 5 min"


@pytest.mark.parametrize(
    ("parts", "made"),
    [
        (("services", "a/b"), "/services/a%2Fb"),
        (("nodes", "<script>"), "/nodes/%3Cscript%3E"),
        (("nodes", ".."), "/nodes/.."),
        (("instances", "c", "i?x#y"), "/instances/c/i%3Fx%23y"),
    ],
)
def test_names_in_an_address_are_escaped(parts: tuple[str, ...], made: str) -> None:
    assert url(*parts) == made


def test_a_console_answers_by_its_own_names_only() -> None:
    shield = Shield("10.0.0.1:7580", "https://console.example/", is_tls=True)
    shield.check("GET", "console.example", {})
    shield.check("POST", "console.example", {b"origin": b"https://console.example"})
    for authority in ("localhost:7580", "127.0.0.1:7580", "evil.example"):
        with pytest.raises(BadPageRequest):
            shield.check("GET", authority, {})
    with pytest.raises(BadPageRequest):
        shield.check("POST", "console.example", {b"origin": b"http://console.example"})
