"""`/sd/prometheus`: instances as scrape targets, in the format of Prometheus' HTTP service discovery.

https://prometheus.io/docs/prometheus/latest/http_sd/: a JSON list of groups of targets with labels, always complete. On
any answer but 200 Prometheus goes on with the targets that it had; so an answer without all of them must not be a 200.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry

from hqapi.reach import FOUND
from serving.calls.methods import Call
from serving.errors import ServiceError, invalid
from serving.rights.rules import READ
from serving.standard.pages import HttpPage, PageAnswer, PageRequest
from serving.telemetry.metrics import Declared, Table

PATH: Final = "/sd/prometheus"

_READY: Final = {"true": True, "any": False}
_PARAMETERS: Final = frozenset({"service", "port", "ready"})
_UNFIT: Final = re.compile(r"[^a-zA-Z0-9_]")
_SLICE: Final = 200  # targets before others have their turn: some 2 ms


class TargetQuery(NamedTuple):
    """The query of a request. No services: all of them."""

    services: tuple[str, ...]
    port: str
    only_ready: bool


class ScrapeTarget(NamedTuple):
    """An instance as Prometheus sees it."""

    id: str
    service: str
    cluster: str
    node: str
    labels: Sequence[tuple[str, str]]
    ready_revisions: Sequence[str]
    host: str
    ports: Mapping[str, int]


Finder = Callable[[TargetQuery, Call], AsyncIterator[Sequence[ScrapeTarget]]]
"""Yields the instances in order of ids. Raises ServiceError if it cannot find all of them."""


def parse_query(request: PageRequest) -> TargetQuery:
    """Parse the query of a request. Raises InvalidRequest, naming the parameter."""
    query = request.query()
    for name in query.keys() - _PARAMETERS:
        raise invalid(name[:100], f"unknown parameter: use {', '.join(sorted(_PARAMETERS))}")
    ports, ready = query.get("port", []), query.get("ready", ["true"])
    if len(ports) != 1 or not ports[0]:
        raise invalid("port", "name one port as in the allocations, e.g. port=metrics")
    if len(ready) != 1 or ready[0] not in _READY:
        raise invalid("ready", "write true (only ready instances, the default) or any")
    services = query.get("service", [])
    if "" in services:
        raise invalid("service", "is empty: name a service (repeatable), or omit it for all")
    return TargetQuery(tuple(services), ports[0], _READY[ready[0]])


def group(target: ScrapeTarget, port: str) -> dict[str, object]:
    """A group of one target, which must have that port, and its labels."""
    number = target.ports[port]
    labels = {
        "__meta_hq_instance": target.id,
        "__meta_hq_service": target.service,
        "__meta_hq_cluster": target.cluster,
        "__meta_hq_node": target.node,
        "__meta_hq_host": target.host,
        "__meta_hq_port": port,
        "__meta_hq_port_number": str(number),
        "__meta_hq_ready": "true" if target.ready_revisions else "false",
        "__meta_hq_ready_revision": ",".join(target.ready_revisions),
    }
    for key, value in target.labels:
        name = _UNFIT.sub("_", key)
        labels[f"__meta_hq_label_{name}"] = value
        labels[f"__meta_hq_labelpresent_{name}"] = "true"
    host = f"[{target.host}]" if ":" in target.host and not target.host.startswith("[") else target.host
    return {"targets": [f"{host}:{number}"], "labels": labels}


class PrometheusSd:
    """The page, with counts: of its answers by code, of the targets in them, and of the instances left out."""

    def __init__(self, find: Finder) -> None:
        self._find = find
        self.answers: Counter[str] = Counter()
        self.targets = self.left_out = 0

    async def page(self, request: PageRequest) -> PageAnswer:
        """Raises ServiceError."""
        try:
            groups, left_out = await self._groups(parse_query(request), request.call)
        except ServiceError as error:
            self.answers[error.code] += 1
            raise
        body = b"[" + b",\n".join(groups) + b"]\n"
        etag = b'W/"' + hashlib.blake2b(body, digest_size=12).hexdigest().encode() + b'"'
        headers = ((b"etag", etag), (b"x-hq-left-out", b"%d" % left_out))
        self.targets += len(groups)
        self.left_out += left_out
        if _names(request.headers.get(b"if-none-match", b""), etag):
            self.answers["NOT_MODIFIED"] += 1
            return PageAnswer(304, "application/json", b"", headers)
        self.answers["OK"] += 1
        return PageAnswer(200, "application/json", body, headers)

    async def _groups(self, wanted: TargetQuery, call: Call) -> tuple[list[bytes], int]:
        groups: list[bytes] = []
        left_out = 0
        call.access.check_filter(wanted.services, ())
        async for targets in self._find(wanted, call):
            for start in range(0, len(targets), _SLICE):
                part = targets[start : start + _SLICE]
                fit = [target for target in part if wanted.port in target.ports]
                groups += [_json(group(target, wanted.port)) for target in fit]
                left_out += len(part) - len(fit)
                await asyncio.sleep(0)
        return groups, left_out


def _names(if_none_match: bytes, etag: bytes) -> bool:
    """Whether the header names this version; by RFC 9110 it is compared weakly."""
    opaque = etag.removeprefix(b"W/")
    return any(part.strip().removeprefix(b"W/") in (opaque, b"*") for part in if_none_match.split(b","))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


D = Declared[PrometheusSd]
METRICS: Final = (
    D(
        "counter",
        "hq_sd_answers_total",
        "Responses of /sd/prometheus.",
        lambda sd: {(code,): count for code, count in sd.answers.items()},
        ("code",),
    ),
    D("counter", "hq_sd_targets_total", "Targets in responses of /sd/prometheus.", lambda sd: sd.targets),
    D(
        "counter",
        "hq_sd_left_out_total",
        "Instances omitted from responses of /sd/prometheus because they have no port of that name.",
        lambda sd: sd.left_out,
    ),
)


def pages(find: Finder, metrics: CollectorRegistry) -> dict[str, HttpPage]:
    """The page by its path; its metrics are registered."""
    targets = PrometheusSd(find)
    metrics.register(Table(METRICS, targets))
    return {PATH: HttpPage(targets.page, READ, FOUND)}
