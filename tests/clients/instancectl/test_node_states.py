"""Every state of the table that can occur under instancectl is sent by a real agent, and reaches HQ."""

from __future__ import annotations

import io
import tarfile
from collections import defaultdict

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from nanny.instances import STATES, instance_state
from tests.clients.instancectl.conftest import NewNode
from tests.clients.instancectl.file_server import FileServer
from tests.clients.instancectl.hearsay import watched
from tests.clients.instancectl.supervised import LENIENT, instance, revision
from tests.support.sample_instances import eventually

STUBBORN = "trap '' TERM; echo deaf; while :; do sleep 0.1; done"
SAID_BY_OTHERS = {
    "Unknown",  # HQ says so of an agent that is silent
    "Install scheduled",  # an agent begins to prepare as soon as it knows of a revision
}


def many_files() -> bytes:
    """An archive that takes seconds to unpack."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for number in range(3_000):
            archive.addfile(tarfile.TarInfo(f"f{number}"))
    return packed.getvalue()


def scenarios(files: FileServer) -> dict[str, model.InstanceRevision]:
    """By the state that it leads to; a revision r1."""
    found = {
        "Active": revision(),
        "Prepared": revision(ready=False),
        "Removed": revision(),
        "Downloading": revision(),
        "Downloaded": revision(),
        "Installing": revision(),
        "Invalid checksum": revision(),
        "Pending": revision(script=STUBBORN),
        "Activating": revision(script="exit 1"),
        "Exited": revision(script="exit 0"),
        "Cancelled": revision(script=STUBBORN),
        "Killed": revision(script="kill -9 $$"),
        "Failing": revision(),
        "Hook in progress": revision(script=STUBBORN),
        "Hook cancelled": revision(script=STUBBORN),
        "Timed out": revision(),
        "Retrying": revision(),
    }
    found["Removed"].target = model.REVISION_TARGET_CREATED
    found["Downloading"].file.add(name="silent", url=f"{files.url}/silent")
    found["Downloaded"].package.add(name="many", url=f"{files.url}/many.tgz")
    found["Installing"].prepare.add(command=["sleep", "600"]).timeout.FromSeconds(600)
    found["Invalid checksum"].file.add(name="f", url=f"{files.url}/f", checksum=f"sha256:{'0' * 64}")
    found["Exited"].container[0].restart_policy = model.RESTART_POLICY_NEVER
    found["Cancelled"].container[0].readiness_check.exec.command[:] = ["false"]
    found["Failing"].prepare.add(command=["false"])
    found["Hook cancelled"].container[0].post_start.command[:] = ["sleep", "600"]
    found["Hook cancelled"].container[0].post_start.timeout.FromSeconds(600)
    found["Timed out"].prepare.add(command=["sleep", "600"]).timeout.FromMilliseconds(100)
    found["Retrying"].file.add(name="f", url=f"{files.url}/not-there")
    for stubborn in ("Pending", "Cancelled", "Hook in progress", "Hook cancelled"):
        found[stubborn].container[0].stop_grace_period.FromSeconds(600)
    return found


GIVE_WAY = ("Pending", "Cancelled", "Hook in progress", "Hook cancelled")  # to r2, once they run


def states_of(seen: list[model.Instance]) -> dict[str, set[str]]:
    """By instance and revision."""
    states = defaultdict[str, set[str]](set)
    for found in seen:
        targets = {each.id: each.target for each in found.spec.revision}
        for status in found.status.revision:
            states[f"{found.meta.id}/{status.id}"].add(instance_state(targets.get(status.id), status).new)
    return states


@pytest.mark.long
async def test_every_state_that_can_occur_under_instancectl_is_sent(
    new_node: NewNode, client: Client, files: FileServer
) -> None:
    files.content |= {"/many.tgz": many_files(), "/f": b"something"}
    files.silent.add("/silent")
    wanted = scenarios(files)
    assert {state.new for state in STATES if not state.needs} == wanted.keys() | SAID_BY_OTHERS
    async with watched(client) as seen:
        node = await new_node(*LENIENT).start()
        for state, made in wanted.items():
            await client.create(instance(made, instance_id=id_of(state)))
        for state in GIVE_WAY:
            await node.container_pid(id_of(state))
        await eventually(lambda: all("deaf" in node.container_log(id_of(state)) for state in GIVE_WAY))
        await eventually(lambda: "Active" in states_of(seen)["Hook-in-progress/r1"])
        for state in GIVE_WAY:
            await client.put_revision(id_of(state), revision("r2"))
        try:
            await eventually(lambda: not missing(wanted, states_of(seen)))
        except AssertionError:
            raise AssertionError(
                f"not sent: {missing(wanted, states_of(seen))}; {states_of(seen)}\n{node.log_text()[-2000:]}"
            ) from None


def missing(wanted: dict[str, model.InstanceRevision], seen: dict[str, set[str]]) -> list[str]:
    """States that have not been seen where they occur."""
    where = {state: f"{id_of(state)}/{'r2' if state == 'Pending' else 'r1'}" for state in wanted}
    return [state for state, subject in where.items() if state not in seen.get(subject, ())]


def id_of(state: str) -> str:
    return state.replace(" ", "-")
