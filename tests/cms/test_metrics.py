"""Metrics of the CMS move with what they count."""

from __future__ import annotations

import asyncio
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from cms.metrics import METRICS
from tests.cms.cloud import Cms, service_of


async def scrape(cms: Cms) -> dict[str, float]:
    """Values by name, and by the values of labels: `cms_tasks ok`."""

    def fetch() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{cms.port}/metrics", timeout=10) as answer:
            return str(answer.read(), "utf-8")

    families = text_string_to_metric_families(await asyncio.to_thread(fetch))
    return {" ".join([one.name, *one.labels.values()]): one.value for family in families for one in family.samples}


async def test_each_metric_moves_with_what_it_counts() -> None:
    async with service_of(3) as (_, cms):
        before = await scrape(cms)
        assert (await cms.ask("t1", "h0")).body["status"] == "ok"
        assert (await cms.ask("t2", "h1")).body["status"] == "in-process"
        await cms.call_connect("Freeze", {"reason": "test"}, "CmsAdminService")
        after = await scrape(cms)
    assert {one.name for one in METRICS} <= {name.partition(" ")[0] for name in after}
    assert before["cms_budget_margin default:web"] == 1
    assert after["cms_budget_margin default:web"] == 0
    assert (after["cms_tasks granted"] + after["cms_tasks provisional"], after["cms_tasks waiting"]) == (1, 1)
    assert after["cms_oldest_wait_seconds"] > 0
    assert after["cms_grants_total"] == before["cms_grants_total"] + 1
    assert after["cms_decisions_total"] > before["cms_decisions_total"]
    assert (before["cms_closed"], after["cms_closed"]) == (0, 1)
    assert after["cms_acting"] == after["cms_location_certain ams"] == 1
    assert after["cms_location_instances ams"] == 3
    assert after["cms_location_fences_total ams"] > 0
    assert after["cms_wire_answers_total 200"] >= 2
