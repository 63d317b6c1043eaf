"""Policy files are changed while agents report: rightly, wrongly, at one replica or at all; no living agent expires."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from grpc import StatusCode

from hqclient import Client, CredentialFiles, Credentials, HqApiError
from hqpb.v1 import instance_pb2 as model
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually, instance
from tests.support.secured import POLICY, Secured

pytestmark = [
    pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True),
    *(pytest.mark.long, pytest.mark.timeout(240)),
]

TRUE = model.CONDITION_STATUS_TRUE
TIMEOUT_S, AGENTS = 20.0, 6
FLAGS = ("--liveness-timeout", f"{TIMEOUT_S:g}s", "--report-interval", "2s")
STEP_S = 2.5  # a changed file is in force within a second
MORE = f"{POLICY}    - identities: [another-admin]\n"
WITHOUT_AGENTS = POLICY.replace("agent/{node}", "agents-of-yore/{node}")
BROKEN = "roles: ["


class Secure:
    """Two replicas, each with a policy file of its own, and clients with tokens."""

    def __init__(self, files: Secured, policies: list[Path], addresses: list[str]) -> None:
        self.files, self.policies, self._addresses = files, policies, addresses
        self.taken = self.denied = 0

    def client(self, subject: str) -> Client:
        token = self.files.directory / f"token-{subject.replace('/', '-')}"
        token.write_text(self.files.issuer.token(subject))
        return Client(self._addresses, credentials=Credentials(CredentialFiles(token_file=str(token))))

    async def report(self, number: int) -> None:
        """As an agent does: for ever, and sooner where it is refused."""
        name, node = f"i-{number}", f"n{number}"
        async with self.client(f"agent/{node}") as client:
            mine = await client.begin_reporting(name, "r1", node=node, timeout_s=30)
            status = model.RevisionStatus(id="r1", incarnation=mine.incarnation)
            status.ready.status = TRUE
            while True:
                status.sequence += 1
                try:
                    await client.report(name, status, uid=mine.uid, node=node, timeout_s=10)
                    self.taken += 1
                except HqApiError as error:
                    self.denied += error.code is StatusCode.PERMISSION_DENIED
                await asyncio.sleep(0.5)


async def not_ready(client: Client) -> list[int]:
    found = [(await client.get(f"i-{n}")).instance.status.ready.status for n in range(AGENTS)]
    return [number for number, status in enumerate(found) if status != TRUE]


@asynccontextmanager
async def secure(etcd: SharedEtcd, directory: Path) -> AsyncIterator[Secure]:
    files = Secured(directory)
    policies = [directory / f"policy-{number}.yaml" for number in range(2)]
    async with AsyncExitStack() as stack:
        addresses = []
        for number, policy in enumerate(policies):
            policy.write_text(POLICY)
            given = {"jwks": str(files.issuer.jwks), "issuer": files.given()["issuer"], "policy": str(policy)}
            log = directory / f"hq-{number}.log"
            replica = ReplicaProcess([etcd.endpoint], etcd.prefix, log, (*FLAGS, *files.flags(given)))
            stack.push_async_callback(replica.kill)
            await replica.start()
            addresses.append(replica.grpc)
        yield Secure(files, policies, addresses)


async def test_no_living_agent_expires_whatever_is_written_into_policies(etcd: SharedEtcd, tmp_path: Path) -> None:
    async with secure(etcd, tmp_path) as hq, hq.client("admin") as admin:
        for number in range(AGENTS):
            await admin.create(instance(f"i-{number}", node=f"n{number}"))
        agents = [asyncio.create_task(hq.report(number)) for number in range(AGENTS)]
        try:

            async def is_silent(*numbers: int) -> bool:
                return await not_ready(admin) == list(numbers)

            await eventually(is_silent, 60.0, "all are ready")
            for _ in range(2):
                for one, other in (
                    *((MORE, POLICY), (POLICY, BROKEN), (WITHOUT_AGENTS, POLICY), (POLICY, WITHOUT_AGENTS)),
                    *((WITHOUT_AGENTS, WITHOUT_AGENTS), (POLICY, ""), (POLICY, POLICY)),
                ):
                    for policy, text in zip(hq.policies, (one, other), strict=True):
                        policy.write_text(text)
                    await asyncio.sleep(STEP_S)
            assert await is_silent()
            transitions = (await admin.admin.list_transitions()).transitions
            assert all(each.ready for each in transitions), transitions
            assert min(hq.taken, hq.denied) > AGENTS, "the policies were in force"
            assert not any(agent.done() for agent in agents)

            agents[0].cancel()
            await eventually(lambda: is_silent(0), 3 * TIMEOUT_S, "who is silent expires all the same, and nobody else")
        finally:
            for agent in agents:
                agent.cancel()
            await asyncio.gather(*agents, return_exceptions=True)
