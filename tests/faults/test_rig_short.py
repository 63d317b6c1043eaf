"""`make faults` in small: real processes, faults of fixed seeds, and a history that breaks no promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig.assembling import assemble
from tests.rig.installation import MEMBERS, PREFIX
from tests.rig.load import Amounts
from tests.rig.places import on_the_loopback
from tests.rig.run import RELY_ON, Run, Settings
from tests.rig.schedule import Order
from tests.rig.trust import PLAIN, made_for
from tests.rig.truth_faults import RESTARTS, STRANGER
from tests.rig.verdict import unforeseen, violations_of
from tests.support.etcd import binary_of, newest_of

SMALL = Amounts(instances=16, uploaders=4, agents=8, readers=4, watchers=4)


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("version", "seed", "tls"), [("3.4", 11, False), ("3.5", 12, True), ("3.6", 13, False), ("3.7", 14, False)]
)
async def test_faults_break_no_promise(version: str, seed: int, tls: bool, tmp_path: Path) -> None:
    trust = made_for(tmp_path, on_the_loopback(MEMBERS)) if tls else PLAIN
    settings = Settings(binary_of(version), tmp_path, seed, 15.0, 0.9, SMALL, at_least_once=False, trust=trust)
    run = Run(settings, print)
    await run.run()
    history = tmp_path / "history.jsonl.gz"
    assemble(history, run.raws, run.cuts, run.log.path, run.finals, PREFIX)
    assert violations_of(history, RELY_ON) == []
    assert unforeseen(tmp_path) == []
    assert sum(run.nemesis.struck.values()) >= 8
    assert run.log.operations > 500
    assert run.hq.followed_answers > 20


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_foreign_compactions_and_quick_restarts_break_no_promise(tmp_path: Path) -> None:
    """A stranger compacts deletions that a replica did not hear of, and replicas restart faster than the timeout."""
    run = Run(Settings(newest_of("3.6"), tmp_path, 15, 15.0, 0.9, SMALL), print)
    # One after the other: a deletion whose answer the other fault holds back is not known to have happened.
    cut_off, slowed = (Order(1.0 + 9 * n, STRANGER, n, (n + 1) % 3, 3.0, 0.9 - 0.6 * n) for n in (0, 1))
    run.orders = lambda: [cut_off, slowed, Order(11.0, RESTARTS, 0, 1, 0.1, 0.0)]  # type: ignore[method-assign]
    await run.run()
    history = tmp_path / "history.jsonl.gz"
    assemble(history, run.raws, run.cuts, run.log.path, run.finals, PREFIX)
    assert violations_of(history, RELY_ON) == []
    assert unforeseen(tmp_path) == []
    assert run.nemesis.struck == {STRANGER.name: 2, RESTARTS.name: 1}
