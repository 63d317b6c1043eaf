"""Prometheus against a real HQ: it scrapes /metrics, and asks /sd/prometheus for targets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from tests.judges import tools
from tests.judges.everyday import on_both
from tests.judges.processes import ROOT, started
from tests.judges.replica import INSTANCES, Replica
from tests.judges.verdict import Verdict
from tests.support.reserved_port import quiet_port

_EXAMPLE: Final = ROOT / "examples/gateways/prometheus.yml"
_HQ: Final = "http://127.0.0.1:7080"
_PATIENCE_S: Final = 30.0
_ALWAYS_UP: Final = 'count_over_time(up{job="hq"}[1m]) >= 3 and min_over_time(up{job="hq"}[1m]) == 1'
_NOBODY: Final = [{"action": "drop", "source_labels": ["__meta_hq_instance"], "regex": ".*"}]  # found is enough

_NO_TLS: Final = (
    "the discovery of Prometheus 2.42 gets no TLS connection, from uvicorn neither; curl and Go's client do"
)


async def prometheus(directory: Path) -> Verdict:
    """HTTP/1.1 in plain text, HTTP/2 over TLS."""
    path, version = await tools.on_path("prometheus", "prometheus", tools.PROMETHEUS)
    verdict = Verdict(version)

    async def judge(replica: Replica, prefix: str) -> None:
        work = directory / f"{prefix.strip()}-prometheus"
        work.mkdir()
        (work / "prometheus.yml").write_text(json.dumps(_config(replica)))  # JSON is YAML
        address = f"127.0.0.1:{quiet_port()}"
        flags = (f"--config.file={work / 'prometheus.yml'}", f"--storage.tsdb.path={work / 'data'}")
        async with started((path, *flags, f"--web.listen-address={address}"), work / "log"):
            await verdict.case(prefix + "scrapes /metrics", _scraped(address))
            if replica.ca:
                verdict.left_out.append(f"{prefix}discovers: {_NO_TLS}")
            else:
                await verdict.case(prefix + "discovers", _discovered(address))

    await on_both(verdict, directory, judge)
    return verdict


def _config(replica: Replica) -> dict[str, Any]:
    secure = {"tls_config": {"ca_file": str(replica.ca)}, "authorization": {"credentials": replica.token}}
    more: dict[str, Any] = secure if replica.ca else {}
    [example] = yaml.safe_load(_EXAMPLE.read_text())["scrape_configs"]
    [found] = example["http_sd_configs"]
    found |= {"url": found["url"].replace(_HQ, replica.base), "refresh_interval": "1s", **more}
    scheme = replica.base.partition(":")[0]
    return {
        "global": {"scrape_interval": "3s"},  # a scrape may take no longer than that
        "scrape_configs": [
            {"job_name": "hq", "scheme": scheme, "static_configs": [{"targets": [replica.http]}], **more},
            {**example, "relabel_configs": [*example["relabel_configs"], *_NOBODY]},
        ],
    }


async def _scraped(address: str) -> None:
    """Three scrapes went well, and none did not."""
    async with asyncio.timeout(_PATIENCE_S):
        while not (await _asked(address, "query", query=_ALWAYS_UP)).get("result"):
            await asyncio.sleep(0.3)


async def _discovered(address: str) -> None:
    """It knows all instances by their labels."""
    names: set[str] = set()
    async with asyncio.timeout(_PATIENCE_S):
        while names != {*INSTANCES}:
            await asyncio.sleep(0.3)
            dropped = (await _asked(address, "targets", state="dropped")).get("droppedTargets", [])
            names = {each["discoveredLabels"].get("__meta_hq_instance", "") for each in dropped}


async def _asked(address: str, what: str, **query: str) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as client:
        try:
            data: dict[str, Any] = (await client.get(f"/api/v1/{what}", params=query)).json()["data"]
        except (httpx.HTTPError, ValueError, KeyError):  # it is just starting
            return {}
        return data
