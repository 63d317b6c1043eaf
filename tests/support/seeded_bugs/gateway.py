"""Bugs in what a federation gateway follows: its age, what changed, what it forgets."""

from __future__ import annotations

import asyncio

import pytest

from federated.calls.one_location import LocationProgress, Portion
from federated.followed.joined import MergedList
from federated.followed.picture import LocationFrames
from tests.support.following_gateway import FollowingGateway
from tests.support.recorded_run import RecordedRun
from tests.support.seeded_bugs.bug import bug

Patch = pytest.MonkeyPatch
_EVERY = {"service_id": "web"}


async def followed(play: RecordedRun) -> None:
    """A gateway follows a service at a replica that changes, falls behind, says nothing, and has a new history."""
    one = play.client("one", 0)
    gateway = FollowingGateway(play.diary, lambda: play.at(1))
    try:
        for instance_id in ("i-0", "i-1", "i-2"):
            await one.create(instance_id)
        answers = await _asked(play, gateway, 3)
        await one.update("i-0")
        await one.delete("i-1")
        answers += await _asked(play, gateway, 3)
        for hold, go_on in (
            (play.replicas[1].link.hold_watch, play.replicas[1].link.release_watch),
            (gateway.flows.clear, gateway.flows.set),
        ):
            hold()
            await one.update("i-2")
            answers += await _asked(play, gateway, 14)
            go_on()
            await one.update("i-0")
            answers += await _asked(play, gateway, 6)
        await one.create("i-3")
        await play.pause(1)
        await play.restore(undo=1)
        answers += await _asked(play, gateway, 8)
        assert answers > 20, f"only {answers} lists came from memory"
    finally:
        gateway.close()


async def _asked(play: RecordedRun, gateway: FollowingGateway, seconds: int) -> int:
    """Ask twice a second; how often memory answered."""
    answers = 0
    for _ in range(2 * seconds):
        await play.pause(0.5)
        answers += await gateway.find(_EVERY)
        await asyncio.sleep(0)
    return answers


@bug("A list from a gateway's memory is called as fresh as its last message was.", "FRESH", followed)
def followed_list_never_ages(patch: Patch) -> None:
    source = LocationFrames.source
    patch.setattr(LocationFrames, "source", lambda self, _: source(self, self.last_at))


@bug("A gateway answers from memory however long its location has said nothing.", "FRESH", followed)
def followed_in_silence(patch: Patch) -> None:
    patch.setattr(LocationFrames, "is_usable", lambda self, _: self._is_complete)


@bug("A list from a gateway's memory is not made again when its location says what changed.", "GENUINE", followed)
def followed_list_is_kept(patch: Patch) -> None:
    moved = MergedList._update_order

    def once(self: MergedList, name: str, shown: LocationFrames) -> bool:
        return self._body.generation == 0 and moved(self, name, shown)

    patch.setattr(MergedList, "_update_order", once)


@bug("A gateway keeps what a location showed when that location has a new history.", "GENUINE", followed)
def followed_over_a_resync(patch: Patch) -> None:
    received = LocationProgress.apply_message

    def remembering(self: LocationProgress, message: object) -> list[Portion]:
        portions = received(self, message)  # type: ignore[arg-type]
        return [portion._replace(forget=False) for portion in portions]

    patch.setattr(LocationProgress, "apply_message", remembering)
