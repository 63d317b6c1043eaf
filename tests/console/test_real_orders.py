"""What people order on pages, in a real browser over real servers: one instance, pause, stop, fuses, planned work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from playwright.async_api import Page, expect

from hqclient import CredentialFiles, Credentials
from hqpb.v1 import instance_pb2 as ipb
from nannypb.v1 import service_pb2 as npb
from nannypb.v1.service_stubs import NannyServiceStub
from tests.console.chromium import Screen, chromium, needs_chromium, screen
from tests.console.real import ANY_ADDRESS, Everything, call_until_taken, everything, process
from tests.console.scene import Browser, browser_at, console_over, servers_at
from tests.console.test_real import CONTENT
from tests.support.etcd import SharedEtcd
from tests.support.sample_instances import eventually
from tests.support.secured import Secured, served
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as wpb
from wallepb.v1.service_stubs import WalleServiceStub

pytestmark = [needs_chromium, pytest.mark.long, pytest.mark.timeout(600)]

SNAPSHOTS = "/services/site/snapshots"


@asynccontextmanager
async def seen(path: str) -> AsyncIterator[tuple[Everything, Screen]]:
    """All servers, and their page in a browser; nothing may have gone wrong on it at the end."""
    async with everything() as at, chromium() as browser, screen(browser, at.browser.base) as shown:
        await shown.open(path)
        yield at, shown
        assert shown.faults == []


async def test_one_instance_is_changed_and_its_service_paused_and_stopped_with_the_keyboard_alone() -> None:
    async with seen("/services") as (at, shown), grpc.aio.insecure_channel(at.nanny) as channel:
        nanny = NannyServiceStub(channel)
        snapshot = await _running_service(nanny)
        keys = Keys(shown.page)

        await shown.open(f"{SNAPSHOTS}/{snapshot}")
        await expect(shown.page.locator("tbody tr")).to_have_count(2, timeout=30_000)
        await keys.press_button("Change the target of site-2")
        await keys.choose("PREPARED")
        await keys.fill("Comment", "noisy disk")
        await shown.see("Ordered for site-2 alone")
        await expect(shown.page.locator("tbody tr").nth(1)).to_contain_text("for this one alone", timeout=30_000)
        await expect(shown.page.locator("tbody tr").nth(1)).to_contain_text("noisy disk")

        async def is_off() -> bool:
            found = [one async for page in at.client.find() for one in page.instances if one.meta.id == "site-2"]
            return found[0].spec.revision[0].target == ipb.REVISION_TARGET_INSTALLED

        await eventually(is_off, 30)
        await expect(shown.page.locator("tbody tr").nth(1)).to_contain_text("Prepared", timeout=30_000)

        await shown.open(SNAPSHOTS)
        await shown.see("Some instances have targets of their own")
        await keys.press_button("Pause actions")
        await keys.fill("Why", "looking at graphs")
        await expect(shown.page.locator(".state-line")).to_contain_text("Actions are paused by")
        await expect(shown.page.locator(".state-line")).to_contain_text("looking at graphs")
        await keys.press_button("Resume actions")
        await keys.press_enter_on("Resume actions")
        await shown.unseen("Actions are paused by")
        await keys.press_button("Stop service")
        await keys.fill("Why", "moved away")
        await expect(shown.page.locator(".state-line")).to_contain_text("Offline", timeout=30_000)
        await expect(shown.page.get_by_role("button", name="Stop service")).to_have_count(0)
        history = (await nanny.ListHistory(npb.ListHistoryRequest(service_id="site"))).entry
        assert {"noisy disk", "looking at graphs", "moved away"} <= {one.comment for one in history}


async def test_a_fuse_goes_out_by_itself_and_is_switched_on_with_credits_after_a_forecast() -> None:
    async with seen("/") as (at, shown), grpc.aio.insecure_channel(at.walle) as channel:
        walle = WalleServiceStub(channel)
        limit = ppb.Limit(pair=[ppb.PeriodCount(period_s=86_400, count=1)])
        hosts = [f"node-{number}" for number in range(1, 5)]
        await _project(walle, ppb.Project(id="search", limits={"ssh": limit}), hosts)
        await shown.open("/projects/search")
        await shown.see("it would not trip")
        report = wpb.ReportChecksRequest()
        for host in hosts[:2]:  # three of a rack would be an incident
            report.hosts.add(host=host).check.add(name="ssh", failing=True)
        await walle.ReportChecks(report)
        await shown.see("It switched itself off: limit ssh 1d:1 would be exceeded")  # the page follows
        await shown.see("it would trip at once")
        await shown.open("/")
        await shown.see("healing of search is off")
        await shown.page.get_by_role("link", name="healing of search is off").click()

        await shown.page.get_by_label("With these credits").fill("ssh=5")
        await shown.page.get_by_role("button", name="Forecast").click()
        await shown.see("it would not trip")
        healing = shown.page.locator(".columns .card").first
        await healing.get_by_role("button", name="Switch on…").click()
        dialog = shown.page.locator("dialog[open]")
        await expect(dialog.get_by_label("Credits beyond the limits")).to_have_value("ssh=5")
        await dialog.get_by_label("Why").fill("the sshd upgrade is over")
        await dialog.get_by_role("button", name="Switch on").click()
        await expect(shown.page.locator(".columns .card").first).to_contain_text("on", timeout=20_000)
        await shown.see("the sshd upgrade is over")  # the ledger keeps who and why
        await shown.see("Credits: ssh")


async def test_planned_work_on_a_switch_is_asked_for_watched_and_cancelled() -> None:
    async with seen("/scenarios") as (at, shown), grpc.aio.insecure_channel(at.walle) as channel:
        walle = WalleServiceStub(channel)
        async with grpc.aio.insecure_channel(at.nanny) as nannys:
            await _running_service(NannyServiceStub(nannys))
        own = ppb.Cms(url=f"http://{at.cms}", version="v1.4")
        await _project(walle, ppb.Project(id="search", cms=[own]), ["node-a", "node-b"])
        await shown.see("No planned work")
        await shown.page.get_by_role("button", name="Switch maintenance…").click()
        dialog = shown.page.locator("dialog[open]")
        for label, text in (("Name", "NET-7"), ("Switch", "s1"), ("Ticket", "NET-7"), ("Why", "new firmware")):
            await dialog.get_by_label(label, exact=True).fill(text)
        await dialog.get_by_role("button", name="Ask for approval").click()
        await shown.see("Who blocks it")  # one instance of two may be away, and both stand behind the switch
        await expect(shown.page.locator("main")).to_contain_text("site", timeout=30_000)
        await shown.page.get_by_role("button", name="Cancel…").click()
        dialog = shown.page.locator("dialog[open]")
        await dialog.get_by_label("Why").fill("not this week")
        await dialog.get_by_role("button", name="Cancel NET-7").click()
        await shown.see("cancelled")
        await expect(shown.page.get_by_role("button", name="Cancel…")).to_have_count(0, timeout=20_000)


async def test_owners_agree_by_hand_and_the_work_is_ended_when_it_is_done() -> None:
    async with seen("/scenarios") as (at, shown), grpc.aio.insecure_channel(at.walle) as channel:
        walle = WalleServiceStub(channel)
        await _project(walle, ppb.Project(id="search"), ["node-a", "node-b"])  # its CMS is the default one
        work = wpb.AddScenarioRequest(scenario="NET-8", kind=ppb.SCENARIO_KIND_SWITCH_MAINTENANCE, switch="s1")
        work.ticket, work.reason = "NET-8", "new firmware"
        await walle.AddScenario(work)
        await shown.see("NET-8")
        await shown.page.get_by_role("link", name="NET-8").first.click()
        await shown.see("the owners of these hosts agree by hand")
        for button, why in (("Agree for search…", "nobody needs it today"), ("The work is done…", "upgraded")):
            await shown.page.get_by_role("button", name=button).click()
            dialog = shown.page.locator("dialog[open]")
            await dialog.get_by_label("Why").fill(why)
            await dialog.locator("button:not([type=button])").click()
            if button.startswith("Agree"):
                await shown.see("the work may be done")
                await shown.see("nobody needs it today")
        await shown.see("finished")


FORGED = {
    "/services/site/target": {"snapshot": "?", "target": "PREPARED"},
    "/services/site/snapshots/?/target": {"instance": "site-1", "location": "test", "target": "PREPARED"},
    "/services/site/actions/pause": {"comment": "x"},
    "/services/site/actions/resume": {},
    "/services/site/actions/stop": {"comment": "x"},
    "/projects/search/automation": {"automation": "healing", "on": "no", "reason": "x"},
    "/scenarios": {"scenario": "s", "switch": "s1", "ticket": "T-1", "reason": "x"},
    "/scenarios/NET-7/agree": {"project": "search", "reason": "x"},
    "/scenarios/NET-7/end": {"done": "no", "reason": "x"},
    "/hosts/node-a/operation": {"kind": "reboot", "reason": "x"},
    "/hosts/node-a/state": {"state": "MAINTENANCE", "reason": "x"},
    "/nodes/node-a/suspend": {"cluster": "test", "hours": "1", "reason": "x"},
}


async def test_whoever_sees_no_button_cannot_order_by_hand_either(tmp_path: Path, etcd: SharedEtcd) -> None:
    files = Secured(tmp_path)
    async with _secured(files, etcd) as (browser, nanny, walle, snapshot):
        await browser.submit("/signin", {"token": files.issuer.token("reader/anna"), "to": "/"})
        for path in (SNAPSHOTS, f"{SNAPSHOTS}/{snapshot}", "/projects/search", "/scenarios/NET-7", "/hosts/node-a"):
            page = await browser.get(path)
            assert page.status_code == 200, path
            assert "data-dialog=" not in page.text.replace('data-dialog="keys"', ""), path

        async def is_settled() -> bool:
            """Nothing that Nanny has still to do changes what is compared."""
            service = (await nanny.GetService(npb.GetServiceRequest(service_id="site"))).service
            return not (service.pending_events or service.stuck)

        await eventually(is_settled)
        before = await _state_of(nanny, walle)
        for path, form in FORGED.items():
            where = path.replace("?", snapshot)
            filled = {name: snapshot if value == "?" else value for name, value in form.items()}
            assert (await browser.post(where, filled)).status_code == 403, path  # without the form's token
            assert (await browser.submit(where, filled, origin="http://evil.example")).status_code == 403, path
            await browser.submit(where, filled)
            assert "Nothing was done" in await browser.flash(), path
        assert await _state_of(nanny, walle) == before


class Keys:
    """People who have no mouse: everything by Tab, arrows, Space and Enter."""

    def __init__(self, page: Page) -> None:
        self._page, self._keys = page, page.keyboard

    async def press_button(self, name: str) -> None:
        """Tab to it and press it; its dialog opens."""
        await self._page.get_by_role("button", name=name).first.wait_for()
        await self._page.evaluate("document.activeElement.blur()")
        await self.press_enter_on(name)
        await self._page.locator("dialog[open]").wait_for()

    async def press_enter_on(self, name: str) -> None:
        """Tab to a button and press Enter."""
        await self._tab_to(f"(one.getAttribute('aria-label') || one.textContent).trim() === {name!r}")
        await self._keys.press("Enter")

    async def choose(self, value: str) -> None:
        """Choose in the dialog by keyboard: Tab goes to the first choice, arrows to the others."""
        await self._tab_to("one.type === 'radio'")
        await self._keys.press("Space")
        for _ in range(6):
            if await self._is("one.value === " + repr(value)):
                return
            await self._keys.press("ArrowDown")
        raise AssertionError(f"no arrow leads to {value}")

    async def fill(self, label: str, text: str) -> None:
        """Type into a field, and send the form by Enter."""
        await self._tab_to(f"one.labels && one.labels.length && one.labels[0].textContent === {label!r}")
        await self._keys.type(text)
        await self._keys.press("Enter")

    async def _tab_to(self, wanted: str) -> None:
        for _ in range(80):
            if await self._is(wanted):
                return
            await self._keys.press("Tab")
        raise AssertionError(f"Tab does not lead to {wanted}")

    async def _is(self, wanted: str) -> bool:
        found: bool = await self._page.evaluate(
            f"(() => {{ const one = document.activeElement; return !!({wanted}); }})()"
        )
        return found


@asynccontextmanager
async def _secured(files: Secured, etcd: SharedEtcd) -> AsyncIterator[tuple[Browser, Any, Any, str]]:
    """Real controllers that ask for tokens, each with one thing to order about, and a console over them."""
    ca, token = str(files.authority.cert), files.issuer.token("admin")
    own = files.directory / "own.token"
    own.write_text(token)
    credentials = Credentials(CredentialFiles(ca, "", "", ""))
    as_admin = grpc.composite_channel_credentials(
        grpc.ssl_channel_credentials(files.authority.cert.read_bytes()), grpc.access_token_call_credentials(token)
    )

    def serving(module: str, *more: str) -> Any:
        flags = files.flags(files.given(audit_log=str(files.directory / f"{module}.jsonl")))
        store = ("--etcd", etcd.endpoint, "--prefix", f"{etcd.prefix}{module}/")
        hq = ("--hq-ca", ca, "--hq-token-file", str(own))
        return process(module, "serve", *store, *ANY_ADDRESS, *flags, *hq, *more)

    async with (
        served(files.security()) as hq,
        serving("nanny.main", "--location", f"test={hq.addresses.grpc}") as (nannys, _),
        serving("walle.main", "--location", f"test={hq.addresses.grpc}") as (walles, _),
        grpc.aio.secure_channel(nannys, as_admin) as nanny_channel,
        grpc.aio.secure_channel(walles, as_admin) as walle_channel,
    ):
        nanny, walle = NannyServiceStub(nanny_channel), WalleServiceStub(walle_channel)
        snapshot = await _service(nanny)
        await _project(walle, ppb.Project(id="search"), ["node-a"])
        work = wpb.AddScenarioRequest(scenario="NET-7", kind=ppb.SCENARIO_KIND_SWITCH_MAINTENANCE, switch="s1")
        work.ticket, work.reason = "NET-7", "new firmware"
        await call_until_taken(walle.AddScenario, work)
        await call_until_taken(walle.GetScenario, wpb.GetScenarioRequest(scenario="NET-7"))
        servers = servers_at(hq.addresses.grpc, credentials, nanny=nannys, walle=walles)
        async with console_over(lambda: servers) as console, browser_at(console.base) as browser:
            yield browser, nanny, walle, snapshot


async def _service(nanny: Any) -> str:
    """Its one snapshot."""
    info = npb.InfoAttributes(rollout=npb.RolloutPolicy(min_ready_s=0, soak_s=0, max_unavailable="1"))
    await call_until_taken(nanny.CreateService, npb.CreateServiceRequest(service_id="site", info=info))
    content = CONTENT.format(title="v1").encode()
    made = await call_until_taken(nanny.CreateSnapshot, npb.CreateSnapshotRequest(service_id="site", content=content))
    return str(made.snapshot.id)


async def _running_service(nanny: Any) -> str:
    """The snapshot that is active."""
    snapshot = await _service(nanny)
    order = npb.SetTargetRequest(service_id="site", snapshot_id=snapshot, target=npb.TARGET_ACTIVE)
    await call_until_taken(nanny.SetTarget, order)

    async def is_active() -> bool:
        found = await nanny.GetService(npb.GetServiceRequest(service_id="site"))
        return any(one.current == npb.CURRENT_STATE_ACTIVE for one in found.service.snapshot)

    await eventually(is_active, 60)
    return snapshot


async def _project(walle: Any, project: ppb.Project, hosts: Sequence[str]) -> None:
    """With hosts behind one switch."""
    await call_until_taken(walle.CreateProject, wpb.CreateProjectRequest(project=project))
    for host in hosts:
        request = wpb.AddHostRequest(host=host, project=project.id)
        request.location.dc, request.location.rack, request.location.switch = "dc", "rack-1", "s1"
        await call_until_taken(walle.AddHost, request)
    for host in hosts:
        await call_until_taken(walle.GetHost, wpb.GetHostRequest(host=host))


async def _state_of(nanny: Any, walle: Any) -> list[object]:
    """What forged orders would have changed."""
    service = (await nanny.GetService(npb.GetServiceRequest(service_id="site"))).service
    fuse = (await walle.GetProject(wpb.GetProjectRequest(project="search"))).fuse
    host = (await walle.GetHost(wpb.GetHostRequest(host="node-a"))).host
    scenarios = (await walle.ListScenarios(wpb.ListScenariosRequest())).scenarios
    over = [one.stage >= ppb.SCENARIO_STAGE_RETURNING for one in scenarios]
    return [service, fuse.healing.off, host.state, host.HasField("operation"), over]
