"""A registry of two replicas against a model: any calls in any order, restarts, lost answers, compaction, restores.

Every answer must be the one that the model gives, and the whole history must keep every promise (tests/checker).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.checker.history import FAILED, OK, Op
from tests.support.faulty_store import Fate
from tests.support.recorded_run import RecordedRun
from tests.support.recording_agent import Agent
from tests.support.recording_client import Client
from tests.support.reference_registry import STOP, Model
from tests.support.virtual_time import VirtualLoop

T = TypeVar("T")

STOPS = {"NOT_FOUND", "NOT_BEGUN", "STOP", "WRONG_NODE", "WRONG_UID", "UNKNOWN_REVISION", "FENCED"}
TIMEOUT_S = 18.0
SILENCE_S = 2.2 * TIMEOUT_S  # long enough after whatever gap

ids = st.sampled_from(("a", "a-1", "a-1.b", "b"))
revisions = st.sampled_from(("r1", "r2", "r3"))
services, nodes = st.sampled_from(("web", "mail")), st.sampled_from(("node-1", "node-2"))
replicas = st.integers(0, 1)
versions = st.sampled_from(("any", "right", "wrong"))
filters = st.fixed_dictionaries(
    {}, optional={"service_id": services, "node_name": nodes, "ready": st.sampled_from("TF")}
)


class Registries(RuleBasedStateMachine):
    """Two replicas over one store, in virtual time; the calls come one after the other, at either of them."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = self.new_loop()
        self.play = self.new_play()
        for _ in range(2):
            self.do(self.play.start())
        self.model = Model()
        self.agents: dict[tuple[str, str], tuple[Agent, int]] = {}
        self.pasts: list[tuple[int, Model]] = []
        self.watches = [self.play.watch("all"), self.play.watch("ready", service_id="web", ready="T")]
        for watch in self.watches:
            self.do(watch.open(self.play.at(0)))

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return VirtualLoop()

    def new_play(self) -> RecordedRun:
        return RecordedRun(timeout_s=TIMEOUT_S)

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    def client(self, replica: int) -> Client:
        return self.play.client(f"at-{replica}", replica)

    def demanded(self, instance_id: str, which: str) -> int:
        found = self.model.instances.get(instance_id)
        return {"any": 0, "wrong": 2, "right": found.version if found else 0}[which]

    def answered(self, call: Op, expected: str) -> None:
        """The answer is the model's."""
        got = "" if call.outcome == OK else call.error
        assert got == expected or (expected == STOP and got in STOPS), f"expected {expected or 'ok'}: {call}"
        if not expected and call.write is not None and call.write.version and call.key in self.model.instances:
            self.model.instances[call.key].version = call.write.version

    # --- writes -----------------------------------------------------------------------------------------------------

    @rule(replica=replicas, instance_id=ids, service=services, node=nodes)
    def create(self, replica: int, instance_id: str, service: str, node: str) -> None:
        client = self.client(replica)
        self.do(client.create(instance_id, service, node))
        self.answered(client.last, self.model.create(instance_id, service, node, ["r1", "r2"]))

    @rule(replica=replicas, instance_id=ids, service=services, version=versions)
    def change_service(self, replica: int, instance_id: str, service: str, version: str) -> None:
        client, demanded = self.client(replica), self.demanded(instance_id, version)
        self.do(client.update(instance_id, demanded, service=service))
        self.answered(client.last, self.model.update(instance_id, demanded, service=service))

    @rule(replica=replicas, instance_id=ids, node=nodes, version=versions)
    def move(self, replica: int, instance_id: str, node: str, version: str) -> None:
        client, demanded = self.client(replica), self.demanded(instance_id, version)
        self.do(client.update(instance_id, demanded, node=node))
        self.answered(client.last, self.model.update(instance_id, demanded, node=node))

    @rule(replica=replicas, instance_id=ids, revision_id=revisions, version=versions)
    def put_revision(self, replica: int, instance_id: str, revision_id: str, version: str) -> None:
        client, demanded = self.client(replica), self.demanded(instance_id, version)
        self.do(client.put_revision(instance_id, revision_id, demanded))
        self.answered(client.last, self.model.put_revision(instance_id, revision_id, demanded))

    @rule(replica=replicas, instance_id=ids, revision_id=revisions)
    def delete_revision(self, replica: int, instance_id: str, revision_id: str) -> None:
        client = self.client(replica)
        self.do(client.delete_revision(instance_id, revision_id))
        self.answered(client.last, self.model.delete_revision(instance_id, revision_id))

    @rule(replica=replicas, instance_id=ids, version=versions)
    def delete(self, replica: int, instance_id: str, version: str) -> None:
        client, demanded = self.client(replica), self.demanded(instance_id, version)
        self.do(client.delete(instance_id, demanded))
        self.answered(client.last, self.model.delete(instance_id, demanded))

    @rule(replica=replicas, instance_id=ids, service=services)
    def apply(self, replica: int, instance_id: str, service: str) -> None:
        client = self.client(replica)
        self.do(client.apply(instance_id, service))
        self.answered(client.last, self.model.apply(instance_id, service))

    # --- agents -----------------------------------------------------------------------------------------------------

    @rule(replica=replicas, instance_id=ids, revision_id=revisions, node=nodes)
    def begin(self, replica: int, instance_id: str, revision_id: str, node: str) -> None:
        agent = self.play.agent(instance_id, replica)
        agent.revision_id, agent.node = revision_id, node
        number = self.play.diary.number()
        error = self.do(agent.try_to_begin())
        expected = self.model.begin(instance_id, revision_id, node, number)
        assert error == expected or (expected == STOP and error in STOPS), f"expected {expected or 'ok'}, not {error}"
        if not error:
            self.agents[instance_id, revision_id] = agent, number

    @precondition(lambda self: self.agents)
    @rule(replica=replicas, ready=st.booleans(), again=st.booleans(), data=st.data())
    def report(self, replica: int, ready: bool, again: bool, data: st.DataObject) -> None:
        (instance_id, revision_id), (agent, number) = data.draw(st.sampled_from(sorted(self.agents.items(), key=str)))
        agent.registry = self.client(replica).registry
        again = again and agent.has_reported
        self.do(agent.heartbeat() if again else agent.report(ready=ready))
        told = agent.is_ready
        self.answered(agent.last, self.model.report(instance_id, revision_id, number, ready=told))

    @rule()
    def everybody_falls_silent(self) -> None:
        self.do(self.play.pause(SILENCE_S))
        self.model.all_silent()

    # --- reads ------------------------------------------------------------------------------------------------------

    @rule(replica=replicas, wanted=filters, page_size=st.integers(0, 3))
    def find(self, replica: int, wanted: dict[str, str], page_size: int) -> None:
        found = self.do(self.client(replica).find(wanted, page_size, strong=True))
        assert found is not None
        assert set(found) == self.model.matching(wanted)

    @rule(replica=replicas, instance_id=ids)
    def get(self, replica: int, instance_id: str) -> None:
        client = self.client(replica)
        item = self.do(client.get(instance_id, strong=True))
        found = self.model.instances.get(instance_id)
        assert (item.version if item else None) == (found.version if found else None)
        assert client.last.outcome in (OK, FAILED)

    @rule(replica=replicas, wanted=filters)
    def count(self, replica: int, wanted: dict[str, str]) -> None:
        self.do(self.client(replica).count(wanted))

    @rule(replica=replicas, number=st.integers(0, 1))
    def watch_elsewhere(self, replica: int, number: int) -> None:
        self.do(self.watches[number].open(self.play.at(replica)))

    # --- what befalls HQ --------------------------------------------------------------------------------------------

    @rule(fate=st.sampled_from((Fate.UNANSWERED, Fate.LOST, Fate.LATE)))
    def the_next_answer_is_lost(self, fate: Fate) -> None:
        self.play.lose(fate)

    @rule(replica=replicas)
    def restart(self, replica: int) -> None:
        self.do(self.play.restart(replica))
        for watch in self.watches:
            self.do(watch.open(self.play.at(1 - replica)))

    @rule()
    def connections_break(self) -> None:
        self.play.disconnect()

    @rule()
    def compact(self) -> None:
        self.do(self.play.compact())
        self.pasts.clear()  # nobody restores what was given up

    @precondition(lambda self: self.pasts)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        revision, past = data.draw(st.sampled_from(self.pasts[-4:]))
        if revision == self.play.head:
            return  # nothing would be undone: the history would be the same
        self.do(self.play.restore(self.play.head - revision))
        self.do(self.play.pause(6))
        self.model = past.copy()
        self.pasts.clear()

    @invariant()
    def remember(self) -> None:
        self.pasts.append((self.play.head, self.model.copy()))

    def teardown(self) -> None:
        try:
            broken = self.do(self.play.end())
            assert not broken, "\n".join(map(str, broken))
            for replica in self.play.replicas:
                shown = {
                    entry.traits.id: (entry.traits.service, entry.traits.node, entry.traits.ready)
                    for entry in replica.registry.replica.cache.entries()
                }
                wanted = {i: (found.service, found.node, found.ready) for i, found in self.model.instances.items()}
                assert shown == wanted, f"shown {shown}, by the model {wanted}"
        finally:
            self.do(self.play.__aexit__(None, None, None))
            self.loop.close()


def tried(per_example: float, steps: int = 15) -> settings:
    """Number of histories: the loaded profile's examples, times `per_example`."""
    assert settings.default is not None
    examples = max(5, round(settings.default.max_examples * per_example))
    checks = list(HealthCheck)
    return settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=checks)


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_a_registry_does_what_its_model_does() -> None:
    run_state_machine_as_test(Registries, settings=tried(2))
