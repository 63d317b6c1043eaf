"""Installing revisions while the disk is full."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, cast

from hqpb.v1 import instance_pb2 as model
from instancectl.content.prepare import Preparer
from instancectl.installs import Installs
from instancectl.reports import conditions
from instancectl.state import StateFile
from instancectl.wanted.desired import Desired, RevisionContentKey
from tests.support.sample_instances import eventually


class _Prepares:
    """Prepares every revision at once."""

    async def prepare(self, *_: Any) -> list[str]:
        return ["digest"]


class _Rests:
    """A clock whose sleeps return at once."""

    async def sleep(self, _: float) -> None:
        return


class _FullAtFirst(StateFile):
    """The first write of the state fails, since the disk is full."""

    refused: str = ""

    def _save(self) -> None:
        if not self.refused:
            self.refused = "once"
            raise OSError(errno.ENOSPC, "No space left on device")
        super()._save()


async def test_a_revision_that_could_not_be_written_down_is_tried_again(tmp_path: Path) -> None:
    state = _FullAtFirst(tmp_path / "state.json")
    changed: list[conditions.ConditionVerdict | None] = []
    desired = Desired("i-1", "node-1", (model.InstanceRevision(id="r1"),))
    (key,) = desired.by_key
    installs = Installs(
        cast("Preparer", _Prepares()), state, cast("Any", _Rests()), lambda: changed.append(installs.verdict(key))
    )
    installs.begin(key, desired)
    await eventually(lambda: not installs.preparing and not installs.resting)
    assert not installs.installed
    assert "No space left on device" in (changed[1] or conditions.PENDING).message
    installs.begin(key, desired)
    await eventually(lambda: installs.installed == {key})
    assert StateFile(tmp_path / "state.json").state.installed == {RevisionContentKey("r1", key.digest): ["digest"]}
