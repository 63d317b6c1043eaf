"""The seed's page of a service's snapshots, element by element, over the stand-in of Nanny and a real HQ."""

from __future__ import annotations

import asyncio
import hashlib
import html
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from click.testing import CliRunner

from console.views.snapshots import failure_of, step_text
from nannyctl.main import cli as nanny
from nannypb.v1 import service_pb2 as npb
from tests.console.fakes import BAD, NEW, OLD, FakeNanny, serving
from tests.console.scene import HOSTILE, WithController, check_absence, cloud, secured_console
from tests.support.secured import Secured

PAGE = "/services/web/snapshots"


@dataclass
class WithNanny(WithController):
    nanny: FakeNanny

    async def elements(self) -> list[str]:
        """The elements of the list, from top to bottom."""
        page = (await self.browser.get(PAGE)).text
        return re.findall(r'<li class="snapshot.*?</li>', page, re.DOTALL)


@pytest.fixture
async def at() -> AsyncIterator[WithNanny]:
    nanny = FakeNanny()
    async with (
        serving(nanny.methods()) as address,
        cloud(nanny=address) as made,
    ):
        yield WithNanny(made, nanny)


async def test_head_stands_first_and_what_does_not_exist_is_empty(at: WithNanny) -> None:
    first = (await at.elements())[0]
    assert NEW[:12] in first
    assert "HEAD" in first
    assert first.count('<span class="dim">none</span>') == 2  # current and target
    assert "Change…" in first


async def test_the_active_snapshot_stands_second_without_a_button(at: WithNanny) -> None:
    second = (await at.elements())[1]
    assert OLD[:12] in second
    assert "ACTIVE" in second
    assert "Change…" not in second


async def test_an_element_tells_author_date_and_comment_states_and_ticket(at: WithNanny) -> None:
    head, active, prepared = await at.elements()
    assert "cid" in head
    assert "raise the memory" in head
    assert "OPS-7" in active
    assert "ann" in active
    assert "PREPARED" in prepared
    assert "bob" in prepared
    assert HOSTILE in html.unescape(prepared)
    assert HOSTILE not in prepared


async def test_the_current_state_names_the_configuration_in_hq(at: WithNanny) -> None:
    """A snapshot that is not in HQ has none. Snapshots that run the same share one."""
    same = "5e0f" * 10
    for one in at.nanny.snapshots:
        one.revision_id = same if one.id == OLD else ""
    head, active, prepared = await at.elements()
    assert "configuration" not in head
    assert f'title="The revision {same} in HQ">{same[:12]}<' in active
    assert "configuration" in prepared  # of an earlier version: the snapshot's own id


async def test_an_old_snapshot_without_author_and_comment_is_shown_all_the_same(at: WithNanny) -> None:
    assert "None" not in (await at.elements())[1]


async def test_the_dialog_change_offers_the_targets_and_the_fill_flag(at: WithNanny) -> None:
    page = (await at.browser.get(PAGE)).text
    dialog = page[page.index('<dialog id="change"') :]
    assert re.findall(r'name="target" value="(\w+)"', dialog) == ["CREATED", "PREPARED", "ACTIVE", "DESTROYED"]
    assert "Present in HQ only" in dialog
    assert "Fill pods configuration" in dialog
    assert 'data-choices="CREATED ACTIVE DESTROYED"' in page  # of the prepared one
    assert 'data-choices="CREATED PREPARED ACTIVE"' in page  # of HEAD, which has nothing to destroy


@pytest.mark.parametrize(("active_age_s", "label"), [(100, "Roll back to this…"), (9_000, "Activate…")])
async def test_the_way_back_has_a_dialog_of_its_own_that_names_both_snapshots(
    at: WithNanny, active_age_s: int, label: str
) -> None:
    at.nanny.history.append(npb.HistoryEntry(what="ACTIVATING -> ACTIVE (done)", snapshot_id=BAD))
    at.nanny.snapshots[2].created.time.seconds = int(time.time()) - active_age_s
    at.nanny.snapshots[2].created.comment = "calm version"
    page = html.unescape((await at.browser.get(PAGE)).text)
    assert label in page
    assert f"{BAD[:12]} ({HOSTILE})?" in page
    dialog = page[page.index('<dialog id="roll"') : page.index('<dialog id="change"')]
    assert f"Active now: <b>{OLD[:12]} (calm version)</b>" in dialog
    assert "Destroyed" not in dialog


async def test_one_snapshot_alone_is_no_way_back_and_the_page_says_so(at: WithNanny) -> None:
    assert "No earlier snapshot" not in (await at.browser.get(PAGE)).text
    del at.nanny.web.snapshot[1:]
    at.nanny.snapshots = at.nanny.snapshots[2:]
    at.nanny.web.head = OLD
    assert "No earlier snapshot to roll back to." in (await at.browser.get(PAGE)).text


async def test_dialogs_say_what_runs_now_whatever_was_ordered(at: WithNanny) -> None:
    """HQ's word for it: of web, four instances are ready, with r2."""
    at.nanny.snapshots[1].revision_id = "r2"
    page = (await at.browser.get(PAGE)).text
    for dialog in ("roll", "retry", "change", "stop"):
        assert (
            f"Ready now: test: 4 of {BAD[:12]}."
            in page[page.index(f'<dialog id="{dialog}"') :].partition("</dialog>")[0]
        )


async def test_a_snapshot_to_be_switched_off_next_is_not_called_broken_in_the_history(at: WithNanny) -> None:
    steps = ("another one became ACTIVE", "failed")
    at.nanny.history = [npb.HistoryEntry(what=f"DEACTIVATE_PENDING -> BROKEN ({one})") for one in steps]
    page = (await at.browser.get(PAGE)).text
    assert "DEACTIVATE_PENDING → to be switched off (another one became ACTIVE)" in page
    assert "DEACTIVATE_PENDING → BROKEN (failed)" in page
    assert step_text("BROKEN -> DEACTIVATING (towards PREPARED)") == "→ DEACTIVATING (towards PREPARED)"


async def test_a_snapshot_shows_what_it_contains(at: WithNanny) -> None:
    page = (await at.browser.get(f"{PAGE}/{NEW}")).text
    assert "What it contains" in page
    assert "memory: 2\ncpu: 1" in page


async def test_an_order_that_fails_leaves_its_dialog_open(at: WithNanny) -> None:
    refused = await at.browser.submit("/services/web/target", {"snapshot": BAD}, **{"x-dialog": "1"})
    assert (refused.status_code, refused.text) == (
        400,
        "target: choose one of DESTROYED, CREATED, PREPARED, ACTIVE",
    )
    form = {"snapshot": BAD, "target": "CREATED"}
    done = await at.browser.submit("/services/web/target", form, **{"x-dialog": "1"})
    assert (done.status_code, done.text) == (200, PAGE)
    assert "It is handled in order" in await at.browser.flash()


async def test_apply_sends_the_order_with_who_why_and_ticket(at: WithNanny) -> None:
    form = {
        "snapshot": BAD,
        "target": "CREATED",
        "fill": "on",
        "comment": "why",
        "ticket": "OPS-9",
        "request_id": "r-1",
    }
    await at.browser.submit("/services/web/target", form)
    name, sent = at.nanny.orders[-1]
    assert name == "SetTarget"
    assert (sent.snapshot_id, sent.target, sent.fill_pods_configuration) == (BAD, npb.TARGET_CREATED, True)
    assert (sent.by.comment, sent.by.ticket, sent.request_id) == ("why", "OPS-9", "r-1")
    assert "It is handled in order" in await at.browser.flash()


@pytest.mark.parametrize("form", [{}, {"snapshot": BAD}, {"target": "ACTIVE"}, {"snapshot": BAD, "target": "NONSENSE"}])
async def test_an_order_that_lacks_something_is_refused(at: WithNanny, form: dict[str, str]) -> None:
    assert (await at.browser.submit("/services/web/target", form)).status_code == 400
    assert at.nanny.orders == []


async def test_a_roll_out_shows_how_far_it_is_in_each_location(at: WithNanny) -> None:
    at.nanny.roll_out(6, failed=1, message="batch 4 waits for the CMS")
    page = (await at.browser.get(PAGE)).text
    assert "<b>6</b> of 20" in page
    assert "1 failed" in page
    assert "1 left for later" in page
    assert "batch 4 waits for the CMS" in page
    assert "Updating" in page
    assert page.count('class="done"') == 6


async def test_pause_says_who_and_why_beside_the_state_and_offers_resume(at: WithNanny) -> None:
    assert "Pause actions" in (await at.browser.get(PAGE)).text
    await at.browser.submit("/services/web/actions/pause", {"comment": "look at the metrics"})
    page = (await at.browser.get(PAGE)).text
    assert "Actions are paused by console" in page
    assert "look at the metrics" in page
    assert "Resume actions" in page
    assert 'data-dialog="pause"' not in page
    assert "web is paused" in (await at.browser.get("/")).text
    await at.browser.submit("/services/web/actions/resume", {})
    assert "Actions are paused" not in (await at.browser.get(PAGE)).text


async def test_stop_is_offered_in_every_state_but_offline(at: WithNanny) -> None:
    for state, number in npb.ServiceState.items()[1:]:
        at.nanny.web.MergeFrom(npb.Service(state=npb.ServiceState.Name(number)))
        page = (await at.browser.get(PAGE)).text
        assert ('data-dialog="stop"' in page) == (state != "SERVICE_STATE_OFFLINE")
    await at.browser.submit("/services/web/actions/stop", {"comment": "moved away"})
    assert at.nanny.orders[-1][0] == "StopService"


FAILED = [
    ("PARTIALLY_PREPARED", "PREPARED", "has not become PREPARED"),
    ("PARTIALLY_PREPARED", "DESTROYED", "has not become DESTROYED"),
    ("PARTIALLY_CREATED", "DESTROYED", "has not become DESTROYED"),
    ("BROKEN", "ACTIVE", "web: the roll-out failed"),
]


@pytest.mark.parametrize(("current", "target", "told"), FAILED)
async def test_a_failed_order_is_a_problem_and_can_be_given_again(
    at: WithNanny, current: str, target: str, told: str
) -> None:
    state = npb.SnapshotState(
        snapshot_id=BAD,
        current=f"CURRENT_STATE_{current}",
        target=f"TARGET_{target}",
        message="node-3 is full",
    )
    at.nanny.web.snapshot[1].CopyFrom(state)
    first = (await at.browser.get("/")).text
    assert told in first
    assert "node-3 is full" in first
    assert f"`nanny target web {target.lower()} {BAD}`" in first
    page = (await at.browser.get(PAGE)).text
    assert page.count("Retry…") == 1
    assert f'data-dialog="retry" data-snapshot="{BAD}" data-short="{BAD[:12]}" data-target="{target}"' in page
    await at.browser.submit("/services/web/target", {"snapshot": BAD, "target": target, "comment": "disk added"})
    name, sent = at.nanny.orders[-1]
    assert (name, sent.snapshot_id, sent.target) == ("SetTarget", BAD, state.target)


@pytest.mark.long
async def test_a_snapshot_that_has_arrived_or_is_under_way_has_no_retry(at: WithNanny) -> None:
    assert "Retry…" not in (await at.browser.get(PAGE)).text
    at.nanny.roll_out(3)
    assert "Retry…" not in (await at.browser.get(PAGE)).text


async def test_a_paused_service_is_shown_as_a_state_and_not_as_a_problem(at: WithNanny) -> None:
    await at.browser.submit("/services/web/actions/pause", {"comment": "look at the metrics"})
    found = re.findall(r'<li class="(\w+)">(?:(?!</li>).)*web is paused', (await at.browser.get("/")).text, re.DOTALL)
    assert found == ["note"]


async def test_instances_show_current_target_and_the_gear(at: WithNanny) -> None:
    page = (await at.browser.get(f"{PAGE}/{OLD}")).text
    assert "Activating" in page
    assert "HOOK_SEMI_FAILED" in page
    assert HOSTILE in html.unescape(page)
    assert HOSTILE not in page
    assert page.count("⚙") == 3
    assert "the next roll-out or roll-back overrides this" in page


async def test_an_unknown_instance_cannot_be_ordered_yet(at: WithNanny) -> None:
    page = (await at.browser.get(f"{PAGE}/{OLD}")).text
    assert "disabled" in page[page.index("Change the target of web-2") :][:200]
    assert "disabled" not in page[page.index("Change the target of web-1") :][:200]


async def test_one_instance_is_ordered_alone(at: WithNanny) -> None:
    form = {"instance": "web-1", "location": "test", "target": "PREPARED", "comment": "noisy"}
    await at.browser.submit(f"{PAGE}/{OLD}/target", form)
    name, sent = at.nanny.orders[-1]
    assert name == "SetInstanceTarget"
    assert (sent.instance_id, sent.location, sent.target) == ("web-1", "test", npb.TARGET_PREPARED)
    assert (await at.browser.submit(f"{PAGE}/{OLD}/target", {**form, "target": "DESTROYED"})).status_code == 400


async def test_a_snapshot_shows_what_activating_it_would_change(at: WithNanny) -> None:
    page = (await at.browser.get(f"{PAGE}/{NEW}")).text
    assert "-memory: 1" in page
    assert "+memory: 2" in page


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"state": npb.SERVICE_STATE_BROKEN}, "web: the roll-out failed"),
        ({"stuck": "HQ of east is away"}, "HQ of east is away"),
        ({"drift": ["web-3 is not there"]}, "web differs from what is wanted"),
    ],
)
async def test_the_first_page_tells_what_is_wrong_with_roll_outs(
    at: WithNanny, change: dict[str, object], told: str
) -> None:
    assert told not in (await at.browser.get("/")).text
    at.nanny.web.MergeFrom(npb.Service(**change))  # type: ignore[arg-type]
    assert told in (await at.browser.get("/")).text


async def test_a_page_says_that_there_is_no_nanny_or_that_it_is_silent() -> None:
    await check_absence(PAGE, "nanny", "Nanny")
    async with cloud() as at:
        await at.browser.submit("/services/web/actions/stop", {"comment": "x"})
        assert "Nothing was done" in await at.browser.flash()


async def test_an_unknown_service_and_an_unknown_snapshot_are_not_found(at: WithNanny) -> None:
    assert (await at.browser.get("/services/none/snapshots")).status_code == 404
    assert (await at.browser.get(f"{PAGE}/ffffffffffff")).status_code == 404


@pytest.mark.parametrize(
    ("who", "sees_change", "sees_pause"),
    [
        ("reader/anna", False, False),
        ("web-uploader", True, False),
        ("operator", False, True),
        ("mail-uploader", False, False),
    ],
)
async def test_each_caller_sees_the_buttons_of_its_roles_and_forged_orders_fail(
    tmp_path: Path, who: str, *, sees_change: bool, sees_pause: bool
) -> None:
    files, nanny = Secured(tmp_path), FakeNanny()
    own = files.security(audit_log=str(tmp_path / "nanny.jsonl"))
    async with serving(nanny.methods(), own) as address, secured_console(files, who, nanny=address) as (browser, _):
        page = (await browser.get(PAGE)).text
        assert ("Change…" in page) == sees_change
        assert ('data-dialog="stop"' in page) == sees_change
        assert ('data-dialog="pause"' in page) == sees_pause
        if not sees_pause:
            await browser.submit("/services/web/actions/pause", {"comment": "x"})
            assert "Nothing was done" in await browser.flash()
            assert nanny.orders == []


async def test_a_failed_snapshot_is_marked_where_it_is_offered_and_asks_once_more(at: WithNanny) -> None:
    head, active, failed = await at.elements()
    assert "3 failed, 2 allowed" in failed
    assert 'data-failed="3 failed, 2 allowed' in failed
    assert "failed" not in head + active
    page = (await at.browser.get(PAGE)).text
    dialog = page[page.index('<dialog id="change"') :]
    asked = re.findall(r'data-with="(\w+)"( data-if="failed")?><input type="checkbox" name="(\w+)" required>', dialog)
    assert asked == [("ACTIVE", ' data-if="failed"', "again"), ("DESTROYED", "", "sure")]
    assert 'data-if="failed"><input type="checkbox" name="again" required>' in page[page.index('<dialog id="roll"') :]
    own = (await at.browser.get(f"{PAGE}/{BAD}")).text
    assert "Its last roll-out" in own
    assert 'data-with="ACTIVE"><input type="checkbox" name="again" required>' in own
    assert "Its last roll-out" not in (await at.browser.get(f"{PAGE}/{OLD}")).text


@pytest.mark.parametrize(
    ("outcome", "history", "is_failed"),
    [
        (npb.ORDER_OUTCOME_FAILED, [], True),
        (npb.ORDER_OUTCOME_ROLLED_BACK, [], True),
        (npb.ORDER_OUTCOME_REACHED, ["ACTIVATING -> BROKEN (failed)"], False),
        (npb.ORDER_OUTCOME_OPEN, ["ACTIVATING -> BROKEN (failed)"], False),
        (None, ["ACTIVATING -> BROKEN (failed)", "ACTIVATING -> ACTIVE (done)"], True),
        (None, ["ACTIVATING -> BROKEN (aborted by people)"], True),
        (None, ["ACTIVATING -> ACTIVE (done)", "ACTIVATING -> BROKEN (failed)"], False),
        (None, ["PREPARING -> PARTIALLY_PREPARED (failed)"], False),
        (None, [], False),
    ],
)
def test_a_snapshot_has_failed_until_a_roll_out_of_it_succeeds(
    outcome: npb.OrderOutcome | None, history: list[str], *, is_failed: bool
) -> None:
    state = npb.SnapshotState(snapshot_id=BAD, order=npb.Order(target=npb.TARGET_PREPARED))
    if outcome is not None:
        state.order.target, state.order.outcome = npb.TARGET_ACTIVE, outcome
    entries = [npb.HistoryEntry(what=what, snapshot_id=BAD) for what in history]  # newest first
    assert (failure_of(BAD, state, entries) is not None) == is_failed
    assert failure_of(OLD, None, entries) is None


async def test_a_target_for_many_instances_is_planned_then_ordered_and_what_is_left_shown_again(at: WithNanny) -> None:
    rows = ["test/web-0", "test/web-1", "test/web-2"]
    own = {"order": "CREATED", "service": "web", "snapshot": OLD}
    page = (await at.browser.get(f"{PAGE}/{OLD}")).text
    assert [f"test/web-{n}" for n in range(3)] == re.findall(r'name="chosen" value="([^"]+)"', page)
    plan = (await at.browser.get("/many/instances?" + urlencode({**own, "chosen": rows}, doseq=True))).text
    assert "For 2 of 3 instances" in plan
    assert "has no configuration yet" in plan
    at.nanny.refused = "web-1"
    answer = await at.browser.submit(
        "/many/instances", {**own, "chosen": rows, "request_id": "form-1", "ticket": "T-1"}
    )
    orders = [(sent.instance_id, sent.target, sent.by.ticket) for _, sent in at.nanny.orders]
    assert orders == [("web-0", npb.TARGET_CREATED, "T-1"), ("web-1", npb.TARGET_CREATED, "T-1")]
    assert len({sent.request_id for _, sent in at.nanny.orders}) == 2
    left = answer.headers["location"]
    assert left == "/many/instances?" + urlencode({**own, "chosen": "test/web-1"})
    assert "Done for 1 of 2 instances; not for web-1: instance_id: is gone" in await at.browser.flash()
    assert "For 1 of 1 instance." in (await at.browser.get(left)).text


async def test_actions_of_many_services_are_paused_and_resumed(at: WithNanny) -> None:
    assert 'value="pause">Pause actions' in (await at.browser.get("/services")).text
    plan = (await at.browser.get("/many/services?order=pause&chosen=web&chosen=idle&chosen=cart")).text
    assert "For 2 of 3 services" in plan
    assert "it is not Nanny" in plan
    form = {"chosen": ["web", "idle"], "comment": "rack move"}
    await at.browser.submit("/many/services", {"order": "pause", **form})
    assert [(name, sent.service_id) for name, sent in at.nanny.orders] == [
        ("PauseActions", "web"),
        ("PauseActions", "idle"),
    ]
    assert "it is paused already" in (await at.browser.get("/many/services?order=pause&chosen=web")).text
    assert "paused by console: rack move" in (await at.browser.get("/many/services?order=resume&chosen=web")).text


async def test_attributes_are_changed_only_over_the_version_that_was_read_and_faults_are_said(at: WithNanny) -> None:
    at.nanny.web.info_version = 7
    page = html.unescape((await at.browser.get("/services/web/attributes")).text)
    assert "max_unavailable: 10%" in page
    form = {"info_version": "7", "content": "description: calm\r\nrollout: {max_unavailable: 20%, roll_back: true}"}
    compared = (await at.browser.submit("/services/web/attributes", {**form, "step": "compare"})).text
    assert re.search(r'class="added">\+  max_unavailable: 20%', compared)
    found = re.search(r'name="compared" value="(\w+)"', compared)
    assert found is not None
    other = await at.browser.submit("/services/web/attributes", {**form, "step": "store", "compared": "other"})
    assert other.status_code == 200
    assert at.nanny.orders == []
    await at.browser.submit("/services/web/attributes", {**form, "step": "store", "compared": found[1]})
    [(name, sent)] = at.nanny.orders
    assert (name, sent.info_version, sent.info.rollout.max_unavailable) == ("UpdateService", 7, "20%")
    assert (sent.info.rollout.roll_back, sent.info.description) == (True, "calm")
    for wrong, said in (("rollout: [", "line \\d"), ("colour: red", "colour"), ("- a", "name: value")):
        page = (await at.browser.submit("/services/web/attributes", {**form, "content": wrong, "step": "compare"})).text
        assert f"{wrong}</textarea>" in page
        assert re.search(rf'role="alert">[^<]*{said}', page)


async def test_a_service_that_is_offline_can_be_deleted(at: WithNanny) -> None:
    assert 'data-dialog="delete"' not in (await at.browser.get(PAGE)).text
    at.nanny.web.state = npb.SERVICE_STATE_OFFLINE
    assert 'data-dialog="delete"' in (await at.browser.get(PAGE)).text
    answer = await at.browser.submit("/services/web/actions/delete", {"comment": "moved", "ticket": "OPS-8"})
    assert answer.headers["location"] == "/services"
    [(name, sent)] = at.nanny.orders
    assert (name, sent.service_id, sent.by.ticket) == ("DeleteService", "web", "OPS-8")


async def test_a_description_is_checked_while_it_is_typed(at: WithNanny) -> None:
    for content, status, said in (("memory: 4", 200, "/services/web/edit"), ("bad: [", 409, "line 1: is no descr")):
        form = {"content": content, "head": NEW, "step": "check"}
        answer = await at.browser.submit("/services/web/edit", form, **{"x-dialog": "1"})
        assert answer.status_code == status
        assert said in answer.text
    assert all(sent.validate_only for _, sent in at.nanny.orders)


async def test_a_list_of_services_in_a_terminal_has_every_page() -> None:
    async with serving(FakeNanny().methods()) as address:
        listed = await asyncio.to_thread(CliRunner().invoke, nanny, ["service", "list"], env={"NANNY_SERVER": address})
        assert re.findall(r"^(idle|web) ", listed.stdout, re.MULTILINE) == ["idle", "web"]


async def test_problems_read_every_page_of_nannys_services(at: WithNanny) -> None:
    at.nanny.web.stuck = "the content cannot be read"
    assert "web is stuck" in (await at.browser.get("/")).text  # `web` is on the second page


async def test_every_dialog_takes_a_ticket(at: WithNanny) -> None:
    page = (await at.browser.get("/services/web/snapshots")).text
    dialogs = re.findall(r'<dialog id="(\w+)".*?</dialog>', page, re.DOTALL)
    assert set(dialogs) >= {"roll", "retry", "change", "stop", "pause", "head"}
    for dialog in re.findall(r"<dialog .*?</dialog>", page.partition("</main>")[0], re.DOTALL):
        assert 'name="ticket"' in dialog
    assert 'name="ticket"' in (await at.browser.get(f"/services/web/snapshots/{OLD}")).text


async def test_a_control_sets_whether_an_activation_makes_the_snapshot_head(at: WithNanny) -> None:
    at.nanny.web.info_version = 7
    page = (await at.browser.get("/services/web/snapshots")).text
    assert "Set as current on activation" in page
    form = {"set": "on", "info_version": "7", "comment": "why", "ticket": "OPS-9"}
    await at.browser.submit("/services/web/attributes/head", form)
    name, sent = at.nanny.orders[-1]
    assert (name, list(sent.update_mask.paths)) == ("UpdateService", ["set_snapshot_as_current_upon_activation"])
    assert (sent.info.set_snapshot_as_current_upon_activation, sent.info_version, sent.by.ticket) == (True, 7, "OPS-9")
    answer = await at.browser.submit("/services/web/attributes/head", {"set": "perhaps"})
    assert answer.status_code == 400


async def test_an_edit_over_head_is_compared_and_checked_before_it_is_stored(at: WithNanny) -> None:
    page = (await at.browser.get("/services/web/edit")).text
    assert "memory: 2\ncpu: 1\n</textarea>" in page
    assert "Store as the new HEAD" not in page
    form = {"content": "memory: 4\r\ncpu: 1", "head": NEW, "comment": "more <memory>", "ticket": "OPS-9"}
    compared = (await at.browser.submit("/services/web/edit", {**form, "step": "compare"})).text
    assert '<span class="removed">-memory: 2' in compared
    assert '<span class="added">+memory: 4' in compared
    assert "more &lt;memory&gt;" in compared
    name, sent = at.nanny.orders[-1]
    assert (name, sent.validate_only, sent.parent) == ("CreateSnapshot", True, NEW)
    found = re.search(r'name="compared" value="(\w+)"', compared)
    assert found is not None
    other = {**form, "content": "memory: 5", "step": "store", "compared": found[1]}
    assert "+memory: 5" in (await at.browser.submit("/services/web/edit", other)).text  # changed since: compared again
    assert at.nanny.orders[-1][1].validate_only
    stored = await at.browser.submit("/services/web/edit", {**form, "step": "store", "compared": found[1]})
    assert stored.headers["location"] == "/services/web/snapshots"
    name, sent = at.nanny.orders[-1]
    assert (sent.validate_only, sent.content, sent.by.ticket) == (False, b"memory: 4\ncpu: 1\n", "OPS-9")


async def test_a_description_that_nanny_refuses_is_shown_as_it_was_typed_with_its_faults(at: WithNanny) -> None:
    form = {"content": "bad: [", "head": NEW, "step": "compare"}
    page = (await at.browser.submit("/services/web/edit", form)).text
    assert "line 1: is no description" in page
    assert "bad: [\n</textarea>" in page
    assert "Store as the new HEAD" not in page


async def test_a_service_is_created_and_its_first_description_written(at: WithNanny) -> None:
    assert "/services/shop/edit" in (await at.browser.get("/services?q=shop")).text
    page = await at.browser.get("/services/shop/edit")
    assert page.status_code == 404
    assert "Create shop" in page.text
    assert "<textarea" not in page.text
    form = {"step": "create", "comment": "a new shop", "ticket": "OPS-10"}
    answer = await at.browser.submit("/services/shop/edit", form)
    assert answer.headers["location"] == "/services/shop/edit"
    name, sent = at.nanny.orders[-1]
    assert (name, sent.service_id, sent.by.ticket) == ("CreateService", "shop", "OPS-10")


async def test_a_name_can_be_created_though_the_search_lists_others(at: WithNanny) -> None:
    for name, offered in (("we", True), ("Web", True), ("web", False), ("my shop", False), ("", False)):
        page = (await at.browser.get(f"/services?q={quote(name)}")).text
        assert (f">Create {name}…<" in page) is offered, name
        assert ("use 1 to 253 letters" in page) is (name == "my shop"), name


async def test_a_first_description_does_not_overwrite_one_that_came_in_between(at: WithNanny) -> None:
    came, form = at.nanny.snapshots[:], {"content": "memory: 4", "head": ""}
    at.nanny.snapshots.clear()
    compared = (await at.browser.submit("/services/web/edit", {**form, "step": "compare"})).text
    found = re.search(r'name="compared" value="(\w+)"', compared)
    assert found is not None
    at.nanny.snapshots.extend(came)
    page = (await at.browser.submit("/services/web/edit", {**form, "step": "store", "compared": found[1]})).text
    assert "There is a HEAD by now" in page
    assert '<span class="removed">-memory: 2' in page
    assert f'name="head" value="{NEW}"' in page
    assert at.nanny.orders[-1][1].validate_only


async def test_a_service_without_a_snapshot_gets_its_first_one(at: WithNanny) -> None:
    at.nanny.snapshots.clear()
    page = await at.browser.get("/services/web/edit")
    assert page.status_code == 200
    assert "Its first description" in page.text
    form = {"content": "memory: 4", "head": ""}
    compared = (await at.browser.submit("/services/web/edit", {**form, "step": "compare"})).text
    assert "+memory: 4" in compared
    assert "Nanny takes it." in compared
    found = re.search(r'name="compared" value="(\w+)"', compared)
    assert found is not None
    await at.browser.submit("/services/web/edit", {**form, "step": "store", "compared": found[1]})
    name, sent = at.nanny.orders[-1]
    assert (name, sent.validate_only, sent.content) == ("CreateSnapshot", False, b"memory: 4\n")
    bad = (await at.browser.submit("/services/web/edit", {"content": "bad: [", "head": "", "step": "compare"})).text
    assert "bad: [\n</textarea>" in bad
    assert "line 1: is no description" in bad


async def test_a_roll_out_shows_its_steps_weights_checks_and_whom_it_judged(at: WithNanny) -> None:
    assert "The last roll-out" not in (await at.browser.get(PAGE)).text
    at.nanny.roll_out(11)
    page = (await at.browser.get(PAGE)).text
    steps = [re.sub(r"<[^>]+>", "", one) for one in re.findall(r'<li class="(?:past|now|coming)".*?</li>', page)]
    wanted = [
        ("over", "1 instance, 5% of the usual weight"),
        ("over", "hold for 10 min"),
        ("now", "wait for a person"),
        ("to come", "50%"),
        ("to come", "check errors", "sum(rate(errors[5m])) below 0.01, for 2 min"),
    ]
    assert len(steps) == len(wanted)
    for step, words in zip(steps, wanted, strict=True):
        assert all(word in step for word in words), step
    picture = page[page.index('<svg class="stairs"') :].partition("</svg>")[0]
    heights = [float(one) for one in re.findall(r'class="(?:past|now|coming|weight)".*?height="([\d.]+)"', picture)]
    assert heights == [3, 3, 3, 3, 3, 3, 30, 3, 30, 3]  # of 60: 1 of 20 instances, then a half; the weight stays
    assert "was done and fell" in page
    assert "What web-1 printed last" in page
    assert "1 batch<" in page


async def test_a_roll_out_that_is_over_shows_where_it_ended_and_cannot_be_promoted(at: WithNanny) -> None:
    at.nanny.roll_out(11)
    assert 'data-dialog="promote" data-order="order-7" data-step="3"' in (await at.browser.get(PAGE)).text
    at.nanny.web.snapshot[2].ClearField("action")
    order = at.nanny.rollout.order
    order.outcome, order.message = npb.ORDER_OUTCOME_FAILED, "2 failed, 1 allowed"
    page = (await at.browser.get(PAGE)).text
    assert "ended here" in page
    assert '<rect class="past" x="1" y="45.0" width="18" height="15.0"/>' in page  # 1 of 4, as the snapshot says
    assert "2 failed, 1 allowed" in page
    assert 'data-dialog="promote"' not in page
    assert 'data-dialog="abort"' not in page


async def test_promote_names_the_order_and_the_step_that_the_page_had(at: WithNanny) -> None:
    at.nanny.roll_out(11)
    await at.browser.submit("/services/web/actions/promote", {"order_id": "order-7", "step": "3", "comment": "fine"})
    [(name, sent)] = at.nanny.orders
    assert (name, sent.order_id, sent.step_number, sent.by.comment) == ("PromoteRollout", "order-7", 3, "fine")
    answer = await at.browser.submit("/services/web/actions/abort", {"order_id": "order-7", "step": "third"})
    assert answer.status_code == 400


async def test_a_failed_roll_out_in_problems_has_what_its_instance_printed(at: WithNanny) -> None:
    at.nanny.roll_out(11)
    new = at.nanny.web.snapshot[2]
    new.ClearField("action")
    new.current, at.nanny.rollout.judged[0].output = npb.CURRENT_STATE_BROKEN, "cannot open /etc/search/index"
    page = (await at.browser.get("/")).text
    assert "web: the roll-out failed" in page
    assert "What web-1 printed last" in page
    assert "cannot open /etc/search/index" in page


async def test_a_stored_snapshot_can_be_prepared_at_once_and_its_instances_are_shown(at: WithNanny) -> None:
    """Unless another snapshot has become HEAD meanwhile."""
    content = "memory: 4\n"
    mark = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    form = {"step": "prepare", "content": content, "head": NEW, "compared": mark, "comment": "more"}
    await at.browser.submit("/services/web/edit", form)
    assert "there is another HEAD by now" in await at.browser.flash()
    assert [name for name, _ in at.nanny.orders] == ["CreateSnapshot"]
    at.nanny.snapshots[0].content = content.encode()
    answer = await at.browser.submit("/services/web/edit", form)
    assert answer.headers["location"] == f"/services/web/snapshots/{NEW}"
    name, sent = at.nanny.orders[-1]
    assert (name, sent.snapshot_id, sent.target, sent.by.comment) == ("SetTarget", NEW, npb.TARGET_PREPARED, "more")
