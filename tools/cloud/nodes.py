"""A node and its agents, whose reports go to HQ together: one call for all of them, as a host agent does it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time

from hqclient.client import Client, HqApiError
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tools.cloud.agents import Agent, Life, earliest

_CALL_S = 4.0
_RETRY_S = (0.5, 1.5)
_SETTLE_S = 0.05  # what changes together is reported together
_FIRST_INTERVAL_S = 2.0


class Node:
    """Runs until cancelled.

    Attributes:
        silent: it says nothing and hears nothing, as a host that lost its network.
    """

    def __init__(self, name: str, client: Client, rng: random.Random) -> None:
        self.name = name
        self.agents: dict[str, Agent] = {}
        self.silent = False
        self._client, self._rng = client, rng
        self._specs: dict[str, instance_pb2.InstanceSpec] = {}
        self._news = asyncio.Event()
        self._unsettled = False  # the last reports were not answered

    def told(self, instance: instance_pb2.Instance) -> None:
        """Follow what HQ wants of an instance here; a silent node learns it when it is awake again."""
        known = self._specs.get(instance.meta.id)
        if known is not None and known.revision == instance.spec.revision:
            return
        self._specs[instance.meta.id] = instance.spec
        self._learn(instance.meta.id)

    def silence(self) -> None:
        """Cut it off."""
        self.silent = True

    def wake(self) -> None:
        """Let it speak again."""
        self.silent = False
        for instance_id in self._specs:
            self._learn(instance_id)

    async def run(self) -> None:
        """Report what is new at once, and everything again and again."""
        while True:
            pause_s = 60.0
            if self.agents and not self.silent:
                pause_s = await self._turn()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._news.wait()
                await asyncio.sleep(_SETTLE_S)
            self._news.clear()

    def _learn(self, instance_id: str) -> None:
        if self.silent:
            return
        agent = self.agents.setdefault(instance_id, Agent(instance_id, self.name, self._rng))
        agent.told(self._specs[instance_id], time.monotonic())
        self._news.set()

    async def _turn(self) -> float:
        """Begin and report; return how long to wait until the next turn, in seconds."""
        try:
            await self._begin()
            now = time.monotonic()
            interval_s = await self._report(now)
        except HqApiError:
            return self._rng.uniform(*_RETRY_S)  # HQ is away: no news of ours
        change_at = earliest(agent.next_change_at(now) for agent in self.agents.values())
        return interval_s if change_at is None else max(0.0, min(interval_s, change_at - time.monotonic() + 0.01))

    async def _begin(self) -> None:
        waiting = [(agent, life) for agent in self.agents.values() for life in agent.strangers()]
        began = (self._begin_one(agent, life) for agent, life in waiting)
        # All of them are waited for: one that is still on its way would void the next try.
        for fault in await asyncio.gather(*began, return_exceptions=True):
            if fault is not None:
                raise fault

    async def _begin_one(self, agent: Agent, life: Life) -> None:
        answer = await self._client.begin_reporting(agent.instance_id, life.id, node=self.name, timeout_s=_CALL_S)
        agent.uid = answer.uid
        life.began(answer.incarnation)

    async def _report(self, now: float) -> float:
        """Say everything as of now; return when to say it next, in seconds."""
        unsettled, self._unsettled = self._unsettled, True
        said = [pair for agent in self.agents.values() for pair in agent.reports(now, unsettled=unsettled)]
        if not said:
            return _FIRST_INTERVAL_S
        answer = await self._client.report_many([report for _, report in said], timeout_s=_CALL_S)
        self._unsettled = False
        for (life, _), result in zip(said, answer.result, strict=True):
            if result.HasField("error"):
                self._on_refusal(life, result.error)
        return answer.next_report_in.ToMilliseconds() / 1000 or _FIRST_INTERVAL_S

    def _on_refusal(self, life: Life, error: pb.ItemError) -> None:
        if error.reason in ("FENCED", "NOT_BEGUN"):
            life.incarnation = 0
            self._news.set()
