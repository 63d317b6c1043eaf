"""The short plays in which seeded bugs must show. Without a bug each of them keeps every promise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from serving.errors import Overloaded
from tests.support.faulty_store import Fate
from tests.support.recorded_run import RecordedRun

IDS = tuple(f"i-{n}" for n in range(6))


async def calm(play: RecordedRun) -> None:
    """Writers race, agents report and heartbeat, readers turn pages, watches move from one replica to the other."""
    one, two = play.client("one", 0), play.client("two", 1)
    everything, ready = play.watch("everything"), play.watch("ready", service_id="web", ready="T")
    late = play.watch("late")
    await everything.open(play.at(0))
    await ready.open(play.at(1))
    await asyncio.gather(*(one.create(instance_id) for instance_id in IDS))
    await play.pause(0.1)
    await late.open(play.at(0))
    agents = [play.agent(instance_id) for instance_id in IDS[:3]]
    for agent in agents:
        await agent.begin()
        await agent.report()
    for turn in range(3):
        item = await one.get("i-0", strong=True)
        version = item.version if item else 0
        await asyncio.gather(one.update("i-0", version), two.update("i-0", version))
        await asyncio.gather(*(agent.heartbeat() for agent in agents))
        await agents[turn].report(ready=False)
        await asyncio.gather(one.put_revision("i-1", "r3"), two.update("i-2", service="mail"))
        await play.pause(0.3)
        await two.find({}, page_size=2)
        await two.find({"service_id": "web"})
        await one.find({"service_id": "web", "ready": "T"}, strong=True)
        await one.count({})
        await everything.close()
        await one.update("i-2", service="web")
        await everything.open(play.at(turn % 2))
        await play.pause(0.3)
        await asyncio.gather(*(agent.heartbeat() for agent in agents))
    for name in ("mail", "web"):  # a bookmark is the last that the watch was told, and something happens at once
        await everything.bookmarked()
        await everything.close()
        await one.update("i-2", service=name)
        await everything.open(play.at(0))
    await one.delete_revision("i-0", "r1")
    await play.pause(0.1)
    await asyncio.gather(one.delete("i-4"), two.apply("i-5"), two.create("i-0"), one.get("i-9"))
    await two.update("i-1", node="node-2")
    await play.pause(0.3)
    await two.create("i-4")


async def lost_answers(play: RecordedRun) -> None:
    """Transactions are lost, answered too late, or arrive when nobody waits for them any more."""
    one, two = play.client("one", 0), play.client("two", 1)
    await asyncio.gather(*(one.create(instance_id) for instance_id in IDS[:4]))
    await play.pause(1)
    for fate in (Fate.UNANSWERED, Fate.LOST, Fate.LATE, Fate.AWAY, Fate.UNANSWERED, Fate.LATE):
        play.store.plan(fate, touching=play.keys.spec(""))
        await one.update("i-0")
        await play.pause(0.2)
        play.store.plan(fate, touching=play.keys.spec(""))
        await asyncio.gather(one.update("i-1"), one.update("i-2"), two.apply("i-1"))
        await play.pause(1)
    play.store.plan(Fate.UNANSWERED, touching=play.keys.spec(""))
    await two.delete("i-3")
    await one.create("i-9")


async def behind(play: RecordedRun) -> None:
    """One replica does not hear what the other one does."""
    one, two = play.client("one", 0), play.client("two", 1)
    versions = {instance_id: await one.create(instance_id) or 0 for instance_id in IDS[:4]}
    await play.pause(1)
    play.replicas[1].link.hold_watch()
    await one.update("i-0", versions["i-0"])
    await one.update("i-1", versions["i-1"])
    await one.delete("i-2")
    newest = await one.update("i-3") or 0
    await one.create("i-4")
    await play.pause(0.1)
    await asyncio.gather(
        two.get("i-0", strong=True),
        two.get("i-3", min_version=newest),
        two.update("i-0", versions["i-0"]),
        two.delete("i-1", versions["i-1"]),
        two.create("i-2"),
        two.create("i-5"),
        two.get("i-4"),
        two.get("i-3"),
        _later(0.6, play.replicas[1].link.release_watch),
    )
    await play.pause(1)
    play.replicas[1].link.cut()
    await play.pause(1)
    await one.update("i-3")
    await play.pause(13)
    await two.find({})
    play.replicas[1].link.mend()
    await play.pause(6)
    await two.find({}, strong=True)


async def silence(play: RecordedRun) -> None:
    """One agent falls silent and is expired; others are heard by one replica while the other one hears nothing."""
    one = play.client("one", 0)
    for instance_id in IDS[:3]:
        await one.create(instance_id)
    heard, quiet = play.agent("i-0", 0), play.agent("i-1", 0)
    for agent in (heard, quiet):
        await agent.begin()
        await agent.report()
    await play.pause(5)
    for turn in range(8):
        await play.pause(10)
        if turn == 0:
            play.replicas[1].link.hold_watch()
        await heard.heartbeat()
    play.replicas[1].link.release_watch()
    await quiet.report()
    await play.pause(2)


async def refused(play: RecordedRun) -> None:
    """One replica refuses an agent that reaches no other, for a timeout and a half."""
    one = play.client("one", 0)
    await one.create("i-0")
    agent = play.agent("i-0", 0)
    await agent.begin()
    await agent.report()
    await play.pause(5)
    honest = play.at(0).reports._take

    async def refuse(*_: object) -> None:
        raise Overloaded("too many calls are under way", limit="max_calls")

    play.at(0).reports._take = refuse  # type: ignore[method-assign,assignment]
    for _ in range(9):
        await play.pause(10)
        await agent.heartbeat()
    play.at(0).reports._take = honest  # type: ignore[method-assign]
    await agent.heartbeat()
    await play.pause(10)


async def heartbeats_refused(play: RecordedRun) -> None:
    """The store refuses every heartbeat, and takes all else."""
    one = play.client("one", 0)
    await one.create("i-0")
    agent = play.agent("i-0")
    await agent.begin()
    await agent.report()
    await play.pause(5)
    play.store.plan(*[Fate.AWAY] * 1_000, touching=play.keys.heartbeats)
    for _ in range(9):
        await play.pause(10)
        await agent.heartbeat()
    play.store.forget_plans()
    await agent.heartbeat()
    await play.pause(10)


async def gap(play: RecordedRun) -> None:
    """The store's history is compacted while one replica is cut off; watches end and are opened again."""
    one, two = play.client("one", 0), play.client("two", 1)
    everything = play.watch("everything")
    await everything.open(play.at(1))
    for instance_id in IDS[:4]:
        await one.create(instance_id)
    await play.pause(1)
    play.store.store.disconnect()
    await one.update("i-0")
    await play.pause(1)
    play.replicas[1].link.cut()
    await one.delete("i-1")
    await one.update("i-2")
    await one.create("i-5")
    await play.compact()
    await one.update("i-3")
    await play.pause(2)
    play.replicas[1].link.mend()
    await play.pause(6)
    await two.find({}, strong=True)


async def compacted_by_a_stranger(play: RecordedRun) -> None:
    """Somebody compacts the store at a deletion that one replica has not been sent yet."""
    one, two = play.client("one", 0), play.client("two", 1)
    for instance_id in IDS[:4]:
        await one.create(instance_id)
    await play.pause(1)
    play.replicas[1].link.hold_watch()
    await one.update("i-0")
    await one.delete("i-1")
    await play.compact()
    play.replicas[1].link.release_watch()
    await play.pause(240)
    await two.find({}, strong=True)
    await one.update("i-3")


async def restored(play: RecordedRun) -> None:
    """The store comes back as it was some writes ago."""
    one, two = play.client("one", 0), play.client("two", 1)
    everything = play.watch("everything")
    await everything.open(play.at(0))
    for instance_id in IDS[:4]:
        await one.create(instance_id)
    await play.pause(1)
    for instance_id in IDS[:4]:
        await one.update(instance_id)
    await one.create("i-5")
    await play.pause(1)
    await play.restore(undo=6)
    await play.pause(6)
    for client in (one, two):
        await client.find({}, strong=True)
        await client.update("i-0")
    await play.pause(1)
    await everything.open(play.at(1))
    await one.create("i-6")


async def _later(seconds: float, do: Callable[[], None]) -> None:
    await asyncio.sleep(seconds)
    do()


async def moves(play: RecordedRun) -> None:
    """Instances change what they are found by."""
    one = play.client("one", 0)
    await asyncio.gather(*(one.create(instance_id) for instance_id in IDS))
    for instance_id in IDS[:4]:
        await one.update(instance_id, node="node-2")
        await one.update(instance_id, service="mail")
        for wanted in ({"service_id": "web"}, {"node_name": "node-1"}, {"service_id": "mail", "node_name": "node-2"}):
            await play.client("all").find(dict(wanted), strong=True)


async def outdated_heartbeats(play: RecordedRun) -> None:
    """An agent asks a replica that does not know yet what it reported at the other one."""
    one = play.client("one", 0)
    await one.create("i-0")
    agent = play.agent("i-0", 0)
    await agent.begin()
    await agent.report()
    await play.pause(1)
    play.replicas[1].link.hold_watch()
    await play.agent("i-0", 0).begin()
    await play.pause(0.1)
    await play.pause(0.01)
    agent.registry = lambda: play.at(1)
    reporting = asyncio.create_task(agent.heartbeat())
    await play.pause(0.1)
    play.replicas[1].link.release_watch()
    await reporting
    await play.pause(1)
