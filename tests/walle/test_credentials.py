"""An uploader of `web` tries for an hour to get a credential of Wall-E, or to have code run; over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

import pytest
from google.protobuf.message import Message

from tests.support.walle.guarded import Guarded, guarded
from tests.support.walle.listener import Listener, answer, listening
from walle.executors.command import CommandConfig
from walle.executors.over_http import RedfishConfig
from walle.outgoing.destinations import CmsEndpoint, Controllers, Destinations, parse_url
from walle.process.config import FileConfig
from walle.work.book import HOST, PROJECT, WalleTransaction
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATE_FREE, OPERATION_KIND_REBOOT, OPERATION_KIND_REDEPLOY, Machine
from wallepb.v1.project_pb2 import SEVERITY_INFO, Cms, Notifications, Project, Recipient

ME = "web-uploader"
MACHINE = Machine(name="h1", project=["web"])


@dataclass
class Scene:
    """Wall-E with a BMC account, a token and a program; what is legitimate, and an attacker's server."""

    walle: Guarded
    bmc: Listener
    cms: Listener
    mine: Listener
    ran: Path

    @property
    def program_arguments(self) -> str:
        return self.ran.read_text() if self.ran.exists() else ""

    async def is_seen(self, host: str, text: str) -> None:
        walle = self.walle.walle
        notices = walle.server.automaton.notices
        await walle.until(lambda: text in f"{walle.of(host)}{[*notices.values()]}", f"{host} or a notice shows {text}")


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        mine = await stack.enter_async_context(listening())
        elsewhere = answer(307, location=f"http://{mine.address}/")
        bmc = await stack.enter_async_context(listening(elsewhere))
        cms = await stack.enter_async_context(listening(elsewhere))
        port, ran = int(bmc.address.rpartition(":")[2]), tmp_path / "ran"
        listed = Destinations(
            (Controllers(ip_network("127.0.0.1"), port, user="walle", password="of-every-bmc"),),
            (CmsEndpoint(parse_url(f"http://{cms.address}"), "of-production", tvm_app_id="prod-cms"),),
        )
        program = CommandConfig(("sh", "-c", f'echo "$@" >> {ran}', "sh", "{host}", "{bmc}"))
        file = FileConfig(
            executors={"bmc": RedfishConfig(url="http://{bmc}", system="{host}"), "program": program},
            operations={OPERATION_KIND_REBOOT: "bmc", OPERATION_KIND_REDEPLOY: "program"},
            destinations=listed,
        )
        walle = await stack.enter_async_context(guarded(tmp_path, file))
        made = pb.CreateProjectRequest(project=Project(id="web", owners=[ME]))
        assert await walle.status("admin", made) == 200
        yield Scene(walle, bmc, cms, mine, ran)


async def test_no_order_of_an_uploader_makes_walle_call_it_or_run_its_words(scene: Scene) -> None:
    at_mine = f"http://{scene.mine.address}"
    token = Cms(url=at_mine, version="v1.4", tvm_app_id="prod-cms")
    own = Notifications(recipient=[Recipient(severity=SEVERITY_INFO, address=f"{at_mine}/hook")])
    lines = Notifications(recipient=[Recipient(severity=SEVERITY_INFO, address="a@b.example\nBcc: c@d.example")])
    bmcs = (scene.mine.address, "-oProxyCommand=touch /tmp/x", f"{scene.bmc.address}/x?", f"a@{scene.mine.address}")
    attempts: list[Message] = [
        pb.CreateProjectRequest(project=Project(id="mine", cms=[token])),
        *(pb.AddHostRequest(host="h1", project="web", bmc=bmc, ignore_cms=True) for bmc in bmcs),
        *(pb.AddHostRequest(host="h1", project="web", bmc=bmc) for bmc in bmcs),
        pb.AddHostRequest(host="-oProxyCommand=x", project="web"),
        pb.UpdateProjectRequest(project="web", cms_mode=pb.CHANGE_MODE_REPLACE, cms=[token]),
        pb.UpdateProjectRequest(project="web", cms_mode=pb.CHANGE_MODE_ADD, cms=[token]),
        *(
            pb.UpdateProjectRequest(project="web", cms_mode=pb.CHANGE_MODE_ADD, cms=[Cms(url=url, version="v1.4")])
            for url in (f"http://{scene.cms.address}@{scene.mine.address}", f"{at_mine}/http://{scene.cms.address}")
        ),
        pb.UpdateProjectRequest(project="web", set_notifications=True, notifications=own),
        pb.UpdateProjectRequest(project="web", set_notifications=True, notifications=lines),
    ]
    for attempt in attempts:
        assert await scene.walle.status(ME, attempt) in (400, 403), attempt
    assert await scene.walle.status("admin", pb.ImportMachinesRequest(machines=[MACHINE])) == 200
    assert await scene.walle.status(ME, pb.AddHostRequest(host="h1", project="web", state=HOST_STATE_FREE)) == 200
    assert await scene.walle.status(ME, pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT)) == 200
    await scene.is_seen("h1", "has no bmc")
    assert (scene.mine.connections, scene.bmc.connections, scene.program_arguments) == (0, 0, "")


@pytest.mark.parametrize("kind", [OPERATION_KIND_REBOOT, OPERATION_KIND_REDEPLOY])
@pytest.mark.parametrize("bmc", ["MINE", "-oProxyCommand=touch /tmp/x", "LISTED/redfish/v1?"])
async def test_an_address_that_an_older_version_stored_is_neither_called_nor_given_to_a_program(
    scene: Scene, kind: int, bmc: str
) -> None:
    assert await scene.walle.status("admin", pb.AddHostRequest(host="h1", project="web", state=HOST_STATE_FREE)) == 200

    def tamper(book: WalleTransaction) -> None:
        host = book.get(HOST, "h1")
        assert host is not None
        host.bmc = bmc.replace("MINE", scene.mine.address).replace("LISTED", scene.bmc.address)
        book.put(HOST, "h1", host)

    await scene.walle.walle.server.automaton.storing.transact(tamper)
    assert await scene.walle.status(ME, pb.StartOperationRequest(host="h1", kind=kind)) == 200  # type: ignore[arg-type]
    await scene.is_seen("h1", "no entry of `redfish`" if bmc == "MINE" else "is not a valid address")
    assert (scene.mine.connections, scene.bmc.connections, scene.program_arguments) == (0, 0, "")


async def test_a_cms_that_an_older_version_stored_is_not_called(scene: Scene) -> None:
    def tamper(book: WalleTransaction) -> None:
        project = book.get(PROJECT, "web")
        assert project is not None
        del project.cms[:]
        project.cms.append(Cms(url=f"http://{scene.mine.address}", version="v1.4", tvm_app_id="prod-cms"))
        book.put(PROJECT, "web", project)

    await scene.walle.walle.server.automaton.storing.transact(tamper)
    assert await scene.walle.status("admin", pb.AddHostRequest(host="h1", project="web", state=HOST_STATE_FREE)) == 200
    assert await scene.walle.status(ME, pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT)) == 200
    await scene.is_seen("h1", "no entry of `cms`")
    assert scene.mine.connections == 0


async def test_a_listed_destination_gets_its_credential_and_sends_it_nowhere_else(scene: Scene) -> None:
    listed = Cms(url=f"http://{scene.cms.address}", version="v1.4", tvm_app_id="prod-cms")
    change = pb.UpdateProjectRequest(project="web", cms_mode=pb.CHANGE_MODE_REPLACE, cms=[listed])
    assert await scene.walle.status(ME, change) == 200
    for host, bmc in (("h1", ""), ("h2", scene.bmc.address)):
        add = pb.AddHostRequest(host=host, project="web", state=HOST_STATE_FREE, bmc=bmc)
        assert await scene.walle.status("admin", add) == 200
    assert await scene.walle.status(ME, pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT)) == 200
    await scene.is_seen("h1", "HTTP 307")
    ignoring = pb.StartOperationRequest(host="h2", kind=OPERATION_KIND_REBOOT, ignore_cms=True)
    assert await scene.walle.status("admin", ignoring) == 200
    await scene.is_seen("h2", "HTTP 307")
    assert all("authorization: Bearer of-production" in head for head in scene.cms.heard)
    assert all("authorization: Basic d2FsbGU6b2YtZXZlcnktYm1j" in head for head in scene.bmc.heard)
    assert scene.mine.connections == 0
