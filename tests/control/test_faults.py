"""Processes killed, paused for twice their term and cut off from etcd: nothing is lost or done twice, never two act."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control.faults import FaultRun
from tests.control.judge import violations
from tests.support.etcd import OwnEtcd


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_processes_struck_in_the_middle_of_their_work_keep_the_promises(
    own_etcd: OwnEtcd, tmp_path: Path
) -> None:
    run = FaultRun(tmp_path, 1, 25, await own_etcd())
    story = await run.run(orders=50)
    assert violations(story) == []
    assert story.acks > 50
    assert sum(run.struck.values()) == 25
