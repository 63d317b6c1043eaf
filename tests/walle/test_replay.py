"""The record of Wall-E's fuses, decided again, gives what was stored."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from tests.support.walle.fuses import DAY, HOUR, Panel
from walle.fuses.admission import AutomaticAction
from walle.fuses.fuse import Automation, counters_of, return_credit, switch_on
from walle.fuses.limits import GLOBAL_DNS, Limits, parse_limit
from walle.other_limits import compare_limits
from walle.replay import repeat_fuses
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, OPERATION_KIND_DNS_FIX, OPERATION_KIND_REBOOT
from wallepb.v1.project_pb2 import Fuse, FuseEntry, FuseLimits, FusesStart

_LIMITS: Mapping[str, Sequence[str]] = {"ssh": ["2h:2", "1d:5"], "UNREACHABLE": ["1h:3"], "dead": ["1d:2"]}
_GLOBAL: Mapping[str, Sequence[str]] = {"max_rebooted_hosts": ["1d:8"]}


class RecordedPanel(Panel):
    """A panel that is followed; `record`: what its recorder was told, as it comes over the wire."""

    def __init__(
        self, limits: Mapping[str, Sequence[str]] = _LIMITS, global_limits: Mapping[str, Sequence[str]] = _GLOBAL
    ) -> None:
        super().__init__(limits, global_limits)
        self.record: list[FuseEntry] = []
        self.operations: list[str] = []
        self._stored: dict[str, Fuse] = {}
        self.begin()

    def begin(self) -> None:
        """A recorder begins anew."""
        limits = [FuseLimits(fuse="web", limits=self.limits), FuseLimits(fuse="global", limits=self.global_limits)]
        self._add(FuseEntry(start=FusesStart(limits=limits, fuse=[self.project, self.everywhere])))
        self._stored = {one.id: one for one in (self.project, self.everywhere)}

    def note(self) -> None:
        """What was stored is told."""
        for fuse in (self.everywhere, self.project):
            if self._stored[fuse.id] != fuse:
                self._stored[fuse.id] = fuse
                self._add(FuseEntry(fuse=fuse))

    def limit(self, counter: str, pairs: Sequence[str]) -> None:
        self.limits[counter] = parse_limit(pairs)
        self._add(FuseEntry(limits=FuseLimits(fuse="web", limits=self.limits)))

    def ask(self, host: str, check: str = "ssh", *, continues: bool = False) -> bool:
        kinds = {"dns": OPERATION_KIND_DNS_FIX, "dead": None}
        kind, operation = kinds.get(check, OPERATION_KIND_REBOOT), f"o{len(self.operations)}"
        self.operations.append(operation)
        action = AutomaticAction(host, check, kind, HOST_STATE_ASSIGNED, operation, continues)
        is_allowed = self.act(action)
        self.note()
        return is_allowed

    def look(self, automation: Automation, credits_: Mapping[str, int] | None = None) -> None:
        self.switch_on(automation, credits_=credits_, credit_s=HOUR)
        mine = counters_of(self.everywhere, automation, GLOBAL_DNS)
        self.everywhere = switch_on(self.everywhere, automation, mine, "admin", "looked at it", self.now)
        self.note()

    def give_back(self, operation: str) -> None:
        self.project = return_credit(self.project, operation, self.now.ms) or self.project
        self.note()

    def _add(self, entry: FuseEntry) -> None:
        self.record.append(FuseEntry.FromString(entry.SerializeToString()))


def live(panel: RecordedPanel, rng: random.Random, days: int) -> None:
    """Hosts break more often than limits allow, people look after fuses and change limits, recorders begin anew."""
    for _ in range(days * 40):
        panel.advance(rng.randrange(1, 2 * DAY // 40))
        match rng.randrange(40):
            case 0 | 1 | 2 | 3:
                automation = rng.choice(list(Automation))
                panel.look(automation, {"ssh": rng.randrange(1, 4)} if rng.random() < 0.5 else None)
            case 4:
                panel.limit("ssh", [f"2h:{rng.randrange(1, 4)}", "1d:5"])
            case 5:
                panel.begin()
            case 6:
                panel.wall_jumps(rng.randrange(-HOUR, HOUR))
            case 7 if panel.operations:
                panel.give_back(rng.choice(panel.operations[-3:]))
            case _:
                check = rng.choice(("ssh", "ssh", "UNREACHABLE", "dns", "dead"))
                panel.ask(f"h{rng.randrange(12)}", check, continues=rng.random() < 0.1)


@pytest.mark.parametrize("seed", range(5))
def test_thirty_days_decided_again_give_what_was_stored(seed: int) -> None:
    panel = RecordedPanel()
    live(panel, random.Random(seed), 30)
    made = repeat_fuses(panel.record)
    assert not made.differing, made.differing[0]
    assert made.uses > 100
    assert made.trips == len(panel.tripped) > 5
    same = compare_limits(panel.record, {"web": {}})
    assert (same.diverged, same.held_back, same.let_through) == (None, 0, 0)
    assert [one.fuse for one in same.recorded] == [one.fuse for one in same.other] == panel.tripped


def test_a_record_that_lacks_something_decides_otherwise() -> None:
    """Else the comparison would compare nothing."""
    panel = RecordedPanel()
    live(panel, random.Random(3), 30)
    limitless = [FuseEntry.FromString(one.SerializeToString()) for one in panel.record]
    for one in limitless:
        one.start.ClearField("limits") if one.HasField("start") else one.ClearField("limits")
    assert repeat_fuses(limitless).differing


@pytest.mark.parametrize(
    ("limit", "held_back", "let_through", "trips"),
    [
        (["1d:3"], 0, 0, ["h3 ssh 1d:3"]),
        (["1d:2"], 1, 0, ["h2 ssh 1d:2"]),
        (["1d:4"], 0, 1, []),
        (["1d:0"], 3, 0, ["h0 ssh 1d:0"]),
    ],
)
def test_other_limits_say_what_would_have_tripped_and_when(
    limit: list[str], held_back: int, let_through: int, trips: list[str]
) -> None:
    panel = RecordedPanel({"ssh": ["1d:3"]})
    for number in range(4):
        panel.advance(60)
        panel.ask(f"h{number}")
    others: dict[str, Limits] = {"web": {"ssh": parse_limit(limit)}}
    made = compare_limits(panel.record, others)
    assert (made.actions, made.held_back, made.let_through) == (4, held_back, let_through)
    assert [f"{one.host} {one.limit}" for one in made.recorded] == ["h3 ssh 1d:3"]
    assert [f"{one.host} {one.limit}" for one in made.other] == trips
    if limit == ["1d:2"]:
        assert made.diverged is not None
        assert made.diverged.ms == (panel.now_s - 60) * 1_000


def test_a_global_limit_holds_back_what_its_project_would_allow() -> None:
    panel = RecordedPanel({"ssh": ["1d:9"]})
    for number in range(4):
        panel.ask(f"h{number}")
    made = compare_limits(panel.record, {"global": {"max_rebooted_hosts": parse_limit(["1d:1"])}})
    assert [(one.fuse, one.host) for one in made.other] == [("global", "h1")]
    assert (made.held_back, made.let_through) == (3, 0)


def test_a_trip_says_which_host_would_have_exceeded_the_limit() -> None:
    panel = RecordedPanel({"ssh": ["1d:1"]})
    panel.ask("h0")
    panel.advance(5)
    panel.ask("h1")
    said = panel.project.switching[0]
    assert (said.host, said.at_ms) == ("h1", panel.now.ms)
