"""The figures that were promised, row by row: what was measured, and whether it is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.bench import abuse, agents, feeds, gateways, leave, orders, pages, reconnecting, recording, single, transport
from tests.bench.results import Results
from tests.bench.stats import Spread, ratio, short, spread


@dataclass(frozen=True, slots=True)
class Figure:
    """One promise. `find` returns the measured value, None if it was not measured.

    Attributes:
        at_least: whether more is better; else less is.
        group: the case that measures it (`make bench CASES=...`).
    """

    what: str
    target: float
    unit: str
    at_least: bool
    group: str
    find: Callable[[Results], Spread | None]

    def told_target(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {_told(self.target, self.unit)}"

    def told(self, found: Spread | None) -> str:
        return "not measured" if found is None else _told(found.median, self.unit)

    def told_spread(self, found: Spread | None) -> str:
        if found is None or found.least == found.greatest:
            return ""
        return f"{_told(found.least, self.unit)} .. {_told(found.greatest, self.unit)}"

    def is_reached(self, found: Spread | None) -> bool:
        if found is None:
            return False
        return found.median >= self.target if self.at_least else found.median <= self.target


def _told(value: float, unit: str) -> str:
    if unit == "%":
        return f"{value:.0%}"
    if unit == "times":
        return f"{value:.2g} times"
    return f"{short(value)} {unit}".strip()


def _ratio(name: str, other: str = "empty", group: str = "") -> Callable[[Results], Spread | None]:
    def find(results: Results) -> Spread | None:
        comparison = results.comparison(name, group)
        return comparison.ratio(other) if comparison else None

    return find


def _dearer(name: str, other: str, group: str = "") -> Callable[[Results], Spread | None]:
    def find(results: Results) -> Spread | None:
        comparison = results.comparison(name, group)
        return ratio(*([s.cpu_us for s in comparison.sides[side]] for side in (other, "hq"))) if comparison else None

    return find


def _cost(name: str, other: str) -> Callable[[Results], Spread | None]:
    """Processor time of an answer, as a multiple of another side's."""

    def find(results: Results) -> Spread | None:
        comparison = results.comparison(name)
        return ratio(*([s.cpu_us for s in comparison.sides[side]] for side in ("hq", other))) if comparison else None

    return find


def _sum(*names: str) -> Callable[[Results], Spread | None]:
    """Of facts of one value each."""

    def find(results: Results) -> Spread | None:
        found = [fact.spread().median for name in names if (fact := results.fact(name)) is not None]
        return spread([sum(found)]) if len(found) == len(names) else None

    return find


def _fact(name: str) -> Callable[[Results], Spread | None]:
    def find(results: Results) -> Spread | None:
        fact = results.fact(name)
        return fact.spread() if fact else None

    return find


def _worst(words: str) -> Callable[[Results], Spread | None]:
    """The greatest of the facts that begin so."""

    def find(results: Results) -> Spread | None:
        found = [fact.spread() for fact in results.facts if fact.name.startswith(words)]
        return max(found, key=lambda one: one.median, default=None)

    return find


def _of(name: str, other: str) -> Callable[[Results], Spread | None]:
    """A fact as a multiple of another one."""

    def find(results: Results) -> Spread | None:
        fact, base = results.fact(name), results.fact(other)
        return spread([fact.spread().median / base.spread().median]) if fact is not None and base is not None else None

    return find


def _rate(name: str) -> Callable[[Results], Spread | None]:
    def find(results: Results) -> Spread | None:
        comparison = results.comparison(name)
        return comparison.rate() if comparison else None

    return find


_MILLION = "under 5,600 heartbeats/s at 1,000,000"

_HOST_AGENTS = "10,000 host agents with 20 instances each"
_SHAPES = ("1 connections x 64", "16 connections x 8", "64 connections x 4")
_LOOKUPS = {"Get": 5.0, "Find 100": 4.0}
_TRANSPORT = (  # a case, what it is held against, and how many times that it shall answer
    *((f"{call}, gRPC, {shape}", "empty", target) for call, target in _LOOKUPS.items() for shape in _SHAPES),
    *((f"{call}, gRPC, tokens", "empty", target) for call, target in _LOOKUPS.items()),
    (transport.FRESH, "empty", 5.0),
    *((f"{call}, gRPC, {way}", "empty", 3.0) for call in _LOOKUPS for way in ("TLS", "TLS and tokens")),
    *((f"{call}, HTTP/1.1 proto", "empty", 1.2) for call in _LOOKUPS),
    ("Get, HTTP/1.1 json", "empty", 1.2),
    ("Find 100, HTTP/1.1 json", "empty", 1.0),  # 148 kB, which the system copies on either side
    (transport.NARROW, "empty", 1.7),
    (transport.AWAKE, "empty", 1.7),
    ("Get, gRPC, TLS", "plain", 0.6),
    ("Find 100, gRPC, 16 connections x 8", "etcd", 3.0),
)
_OTHERS = {"empty": "an empty handler", "plain": "plain text", "etcd": "etcd's range"}

# What a reader of one page wants to know; all others are on the page of measurements.
FIRST = (
    "Get, gRPC, 16 connections x 8, of an empty handler",
    "Find 100, gRPC, 16 connections x 8, of an empty handler",
    "Get, gRPC, TLS and tokens, of an empty handler",
    "Find 100, gRPC, TLS and tokens, of an empty handler",
    "Get, HTTP/1.1 json, of an empty handler",
    "Idle watch: memory",
    "Heartbeats in ReportStatuses of 50",
    "etcd transactions for heartbeats, per replica, at full load",
    "Acknowledged at one replica, visible at another, under 1,000 heartbeats/s, p99",
    "1,000 watchers of one service, 100 changes/s: delivery p99",
    "1,000,000 instances: memory each beyond the encoded bytes",
    "1,000,000 instances: ready to serve",
    "Leader of etcd killed: writes again",
    "Heartbeats at the agents' listener beside the worst abuse: p99",
    "DNS answers on one core",
)
FIGURES = (
    *(
        Figure(f"{case}, of {_OTHERS[other]}", target, "times", True, "transport", _ratio(case, other, "transport"))
        for case, other, target in _TRANSPORT
    ),
    *(
        # The load generator and grpc.aio's threads share two cores: processor time says what one core can answer.
        Figure(
            f"{case}: processor time of an empty handler, of ours",
            target,
            "times",
            True,
            "transport",
            _dearer(case, o, "transport"),
        )
        for case, o, target in _TRANSPORT
        if o == "empty" and "gRPC" in case
    ),
    Figure(f"{single.ONE}, of an empty handler", 4.0, "times", True, "single", _ratio(single.ONE)),
    Figure(f"{single.LARGEST}, of an empty handler", 0.60, "%", True, "single", _ratio(single.LARGEST)),
    Figure(
        *("A rare lookup at the federation gateway: processor time, of a replica's", 5, "times", False),
        *("federated", _cost("Get of three installations, gRPC", "single")),
    ),
    Figure("Idle watch: memory", 10, "KiB", False, "transport", _fact("idle watch: memory")),
    Figure("… over TLS, on a connection of its own", 45, "KiB", False, "transport", _fact(transport.ALONE_WITH_TLS)),
    Figure("… to open", 100, "µs of CPU", False, "transport", _fact(transport.OPENED)),
    Figure(
        *("50,000 watches on 1,000 connections, bookmarks every 5 s", 15, "% of a core", False),
        *("feeds", _fact("50,000 watches, 1,000 connections, bookmarks every 5 s: replica's processor, quiet")),
    ),
    Figure(
        *("… to open one", 100, "µs of CPU", False),
        *("feeds", _fact("50,000 watches, 1,000 connections, bookmarks every 60 s: CPU to open one")),
    ),
    Figure(
        # By processor time: a heartbeat waits for the next batch, so their rate is bounded by how many are in flight.
        *("Heartbeats one by one, 1,000 in flight: processor time of an empty handler, of ours", 3.0, "times", True),
        *("heartbeats", _dearer("Heartbeats one by one, gRPC", "empty")),
    ),
    Figure(
        "FindInstances, 100 instances, gRPC, of an empty handler", 0.80, "%", True, "lookups", _ratio("Find 100, gRPC")
    ),
    Figure(
        "… against raw etcd's range of as many keys", 1.5, "times", True, "lookups", _ratio("Find 100, gRPC", "etcd")
    ),
    Figure(
        *("FindInstances, 100 instances, HTTP proto, of an empty handler", 0.75, "%", True),
        *("lookups", _ratio("Find 100, proto")),
    ),
    Figure(
        *("FindInstances, 100 instances, HTTP JSON, of an empty handler", 0.65, "%", True),
        *("lookups", _ratio("Find 100, JSON")),
    ),
    Figure("GetInstance, gRPC, of an empty handler", 0.80, "%", True, "lookups", _ratio("Get, gRPC")),
    Figure("GetInstance, HTTP proto, of an empty handler", 0.65, "%", True, "lookups", _ratio("Get, proto")),
    Figure(
        *("Heartbeats one by one, gRPC, 1,000 in flight, of an empty handler", 0.50, "%", True),
        *("heartbeats", _ratio("Heartbeats one by one, gRPC")),
    ),
    Figure(
        *("Heartbeats in ReportStatuses of 50", 50_000, "heartbeats/s", True),
        *("heartbeats", _rate("Heartbeats by 50, gRPC")),
    ),
    Figure(
        *("etcd value and key bytes per heartbeat at 1,000 heartbeats/s", 24, "B", False),
        *("heartbeats", _fact("etcd value and key bytes per heartbeat, at 1,000 heartbeats/s")),
    ),
    Figure(
        *("etcd transactions for heartbeats, per replica, at full load", 5, "/s", False),
        *("heartbeats", _fact("etcd transactions for heartbeats, at full load")),
    ),
    Figure(
        *("Status changes, 64 agents at once, of an empty handler", 0.35, "%", True),
        *("changes", _ratio("Status changes, 64 agents, gRPC")),
    ),
    Figure(
        *("etcd revisions for 64 concurrent updates", 8, "", False),
        *("changes", _fact("etcd revisions for 64 concurrent updates")),
    ),
    Figure(
        *("Acknowledged at one replica, visible at another, under 1,000 heartbeats/s, p99", 100, "ms", False),
        *("watch", _fact("visible at another replica: p99")),
    ),
    Figure(
        *("1,000 watchers of one service, 100 changes/s: delivery p99", 250, "ms", False),
        *("watch", _fact("1,000 watchers: p99 delivery")),
    ),
    Figure("… events missing", 0, "", False, "watch", _fact("1,000 watchers: events missing")),
    *(
        Figure(
            f"Commit of 100 changes among {feeds.SIZES[-1]:,} watches by {field}: event loop held",
            2,
            "ms",
            False,
            feeds.GROUP,
            _fact(feeds.name_of(field, feeds.SIZES[-1])),
        )
        for field in feeds.NAMED
    ),
    Figure(
        *("1,000,000 instances: memory each beyond the encoded bytes", 1_100, "B", False),
        *("sizes", _fact("memory each beyond these, 1,000,000")),
    ),
    Figure(
        *("1,000,000 instances: memory each, encoded bytes and all else", 2_000, "B", False),
        *("sizes", _sum("encoded bytes each, 1,000,000", "memory each beyond these, 1,000,000")),
    ),
    Figure("1,000,000 instances: ready to serve", 25, "s", False, "sizes", _fact("ready to serve, 1,000,000")),
    Figure(
        *("… again after an orderly stop, with `--state-dir`", 8, "s", False),
        *("sizes", _fact("serves again after an orderly stop, 1,000,000")),
    ),
    *(
        Figure(
            *(f"1,000,000 instances: memory compared with etcd, nothing else: {name}", 1, "% of a core", False),
            *("sizes", _fact(f"at rest, {name}, 1,000,000")),
        )
        for name in ("a replica", "etcd")
    ),
    Figure(
        *("… lookups under 5,600 heartbeats/s in batches of 50: p99", 20, "ms", False),
        *("sizes", _fact(f"lookups {_MILLION}: p99")),
    ),
    Figure(
        *("… slowest lookup (no stall of the event loop is longer)", 100, "ms", False),
        *("sizes", _fact(f"lookups {_MILLION}: slowest")),
    ),
    Figure(
        *("Leader of etcd killed: writes again", 5, "s", False),
        *("failures", _fact("leader of three members killed: writes again after")),
    ),
    Figure("Half-open connection noticed", 10, "s", False, "failures", _fact("half-open connection noticed after")),
    *(
        Figure(
            f"{what}, security on (tokens), of an empty handler",
            target,
            "%",
            True,
            "security",
            _ratio(name, group="security"),
        )
        for what, target, name in (
            ("GetInstance, gRPC", 0.80, "Get, gRPC, tokens"),
            ("GetInstance, HTTP proto", 0.65, "Get, proto, tokens"),
            ("FindInstances, 100 instances, gRPC", 0.80, "Find 100, gRPC, tokens"),
            ("FindInstances, 100 instances, HTTP proto", 0.75, "Find 100, proto, tokens"),
        )
    ),
    Figure("Calls of a well-behaved client that fail beside abusers", 0, "", False, "abuse", _fact(abuse.FAILED)),
    *(
        Figure(what, 50, "ms", False, "abuse", _worst(f"{name} beside "))
        for what, name in (
            ("Heartbeats at the agents' listener beside the worst abuse: p99", abuse.HEARTBEATS),
            ("… starts of agents (BeginReporting): p99", abuse.STARTS),
        )
    ),
    Figure(
        *("Lookups while 5,000 watches come back: p99, of a replica to which none do", 1.5, "times", False),
        *("reconnect", _of(f"lookups {reconnecting.DURING}: p99", f"lookups {reconnecting.UNKNOWN}: p99")),
    ),
    Figure("Heartbeats by 10,000 host agents, p99", 1_000, "ms", False, "hostagents", _fact(f"{_HOST_AGENTS}: p99")),
    Figure("Expired meanwhile", 0, "", False, "hostagents", _fact(f"{_HOST_AGENTS}: expired")),
    Figure("Memory of a node's agent with 50 instances", 60, "MB", False, "node", _fact(agents.MEMORY_OF_50)),
    Figure("… for each further instance", 0.3, "MB", False, "node", _fact(agents.EACH_FURTHER)),
    Figure(
        "Instances of a quiet node with 200 that are reported in one call",
        199,
        "",
        True,
        "node",
        _fact(agents.TOGETHER),
    ),
    Figure(
        "Its calls in a report interval (HQ asks up to a tenth sooner)", 1.12, "", False, "node", _fact(agents.CALLS)
    ),
    Figure("Acknowledged write to an xDS client, p99", 100, "ms", False, "gateways", _fact(gateways.XDS)),
    Figure(
        "Acknowledged write to the end of a blocking query, p99", 100, "ms", False, "gateways", _fact(gateways.QUERY)
    ),
    Figure(
        "CMS, 100,000 instances, 1,000 tasks wait: a new one decided, p99", 50, "ms", False, "cms", _fact(leave.NEW)
    ),
    Figure("… a poll with its details, p99", 5, "ms", False, "cms", _fact(leave.POLL)),
    Figure(
        *("Nanny, 1,000 services of 10, 24 callers: an order stored and in effect, p99", 100, "ms", False),
        *(orders.GROUP, _fact(orders.ANY_P99)),
    ),
    Figure("Nanny's memory with 1,000 services of 10", 300, "MB", False, orders.GROUP, _fact(orders.MEMORY)),
    Figure("Console, the slowest page over 100,000 instances: p99", 300, "ms", False, "console", _fact(pages.SLOWEST)),
    Figure("Console, a report on an open page of a service: p99", 1_000, "ms", False, "console", _fact(pages.SEEN)),
    Figure(
        "Recorder of 100,000 instances, 1,000 changes/s: of one core",
        0.3,
        "%",
        False,
        "recorder",
        _fact(recording.SHARE),
    ),
    Figure("… a day of a service counted, p99", 50, "ms", False, "recorder", _fact(recording.DRAWN)),
    Figure(
        "Acknowledged write to an answer of the new instance through Envoy, p99",
        100,
        "ms",
        False,
        gateways.BEHIND_ENVOY,
        _fact(gateways.ENVOY),
    ),
    Figure("DNS answers on one core", 100_000, "/s", True, "gateways", _fact(gateways.DNS)),
)
