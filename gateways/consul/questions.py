"""Parses requests into questions. Decisions only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final
from urllib.parse import parse_qs, unquote

DEFAULT_WAIT_S: Final = 300.0
MOST_WAIT_S: Final = 600.0
_MOST_PARAMETERS: Final = 100
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
_PART: Final = re.compile(r"([\d.]+)(ns|us|µs|ms|s|m|h)")
_UNITS_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3_600.0}
_STATES: Final = frozenset({"any", "passing", "warning", "critical"})
_READ_ONLY: Final = (
    "not supported by this gateway, which is read-only: deploy systems create instances (CreateInstance), and agents "
    "report readiness (ReportStatus); it serves reads of /v1/health and /v1/catalog; see docs/gateways.md"
)


class ConsulError(Exception):
    """Answered with a status and a sentence instead."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class QuestionKind(Enum):
    """The kinds of questions."""

    HEALTH_SERVICE = auto()
    HEALTH_CHECKS = auto()
    HEALTH_NODE = auto()
    HEALTH_STATE = auto()
    SERVICE_STATUS = auto()
    INSTANCE_STATUS = auto()
    SERVICES = auto()
    SERVICE = auto()
    NODES = auto()
    NODE = auto()
    NODE_SERVICES = auto()
    DATACENTERS = auto()
    SELF = auto()
    OWN = auto()
    CONNECT = auto()
    LEADER = auto()
    PEERS = auto()


_PATHS: Final[Mapping[str, QuestionKind]] = {
    "health/service/": QuestionKind.HEALTH_SERVICE,
    "health/checks/": QuestionKind.HEALTH_CHECKS,
    "health/node/": QuestionKind.HEALTH_NODE,
    "health/state/": QuestionKind.HEALTH_STATE,
    "catalog/services": QuestionKind.SERVICES,
    "catalog/service/": QuestionKind.SERVICE,
    "catalog/nodes": QuestionKind.NODES,
    "catalog/node/": QuestionKind.NODE,
    "catalog/node-services/": QuestionKind.NODE_SERVICES,
    "catalog/datacenters": QuestionKind.DATACENTERS,
    "agent/self": QuestionKind.SELF,
    "agent/services": QuestionKind.OWN,
    "agent/checks": QuestionKind.OWN,
    "agent/health/service/name/": QuestionKind.SERVICE_STATUS,
    "agent/health/service/id/": QuestionKind.INSTANCE_STATUS,
    "health/connect/": QuestionKind.CONNECT,
    "catalog/connect/": QuestionKind.CONNECT,
    "status/leader": QuestionKind.LEADER,
    "status/peers": QuestionKind.PEERS,
}
_ABOUT_ONE_SERVICE: Final = (
    *(QuestionKind.HEALTH_SERVICE, QuestionKind.HEALTH_CHECKS, QuestionKind.SERVICE, QuestionKind.SERVICE_STATUS),
)
ABOUT_THE_GATEWAY: Final = (QuestionKind.SELF, QuestionKind.LEADER, QuestionKind.PEERS, QuestionKind.OWN)
OF_AN_AGENT: Final = (QuestionKind.SERVICE_STATUS, QuestionKind.INSTANCE_STATUS)
_AT_ONCE: Final = (QuestionKind.DATACENTERS, *ABOUT_THE_GATEWAY)
_UNSUPPORTED: Final = ("node-meta", "peer", "sg")  # ignoring them would answer a different question
_DEFAULTS_ONLY: Final = ("ns", "partition")


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        name: of the service, node or state in its path.
        passing: ready instances only.
        tags: all of these.
        datacenter: empty: the gateway's default.
        index: wait while it stands for the current answer; 0: answer at once.
        wait_s: for at most this time.
        is_text: the answer is a word instead of JSON.
        filter: an expression, see `filters`; empty: none.
    """

    kind: QuestionKind
    name: str = ""
    passing: bool = False
    tags: tuple[str, ...] = ()
    datacenter: str = ""
    index: int = 0
    wait_s: float = DEFAULT_WAIT_S
    pretty: bool = False
    filter: str = ""
    is_text: bool = False

    @property
    def service(self) -> str:
        """The only service that it is about; empty: several."""
        return self.name if self.kind in _ABOUT_ONE_SERVICE else ""

    @property
    def is_about_instances(self) -> bool:
        """Whether its answer changes with instances only, and so does its index."""
        return self.kind not in _AT_ONCE

    @property
    def may_wait(self) -> bool:
        """Whether it is a blocking query."""
        return self.index > 0 and self.is_about_instances and self.kind not in OF_AN_AGENT


def read_question(method: str, path: str, query: bytes) -> Question:
    """The question of a request.

    Raises:
        ConsulError: 501 for writes and unsupported requests, 405, 400 naming the parameter.
    """
    kind, name = _place(path)
    if kind is None:
        raise ConsulError(501, _READ_ONLY)
    if method not in ("GET", "HEAD"):
        raise ConsulError(
            501 if kind in (QuestionKind.SELF, QuestionKind.OWN) else 405, f"{method} {path[:100]}: {_READ_ONLY}"
        )
    given = _parameters(query)
    if kind is QuestionKind.HEALTH_STATE and name not in _STATES:
        raise ConsulError(400, f"{name[:40]!r} is not a state: use any, passing, warning or critical")
    for unsupported in _UNSUPPORTED:
        if given.get(unsupported, [""])[-1]:
            raise ConsulError(400, f"{unsupported} is not supported by HQ: select by tag or filter")
    for only_default in _DEFAULTS_ONLY:
        if given.get(only_default, [""])[-1] not in ("", "default"):
            raise ConsulError(400, f"{only_default}: HQ has only the default one")
    return Question(
        kind,
        name,
        _is_set(given, "passing") or (kind is QuestionKind.HEALTH_STATE and name == "passing"),
        tuple(given.get("tag", ())),
        given.get("dc", [""])[-1],
        _index(given.get("index", ["0"])[-1]),
        _wait_s(given.get("wait", [""])[-1]),
        _is_set(given, "pretty"),
        given.get("filter", [""])[-1].strip(),
        given.get("format", [""])[-1] == "text",
    )


def _place(path: str) -> tuple[QuestionKind | None, str]:
    """The kind of a path, and the name at its end."""
    rest = path.removeprefix("/v1/")
    if rest == path:
        raise ConsulError(404, f"there is no {path[:100]}: Consul's API is under /v1/")
    if (kind := _PATHS.get(rest.removesuffix("/"))) is not None:
        return kind, ""
    for prefix, named in _PATHS.items():
        name = rest.removeprefix(prefix)
        if prefix.endswith("/") and name != rest and name and "/" not in name:
            return named, unquote(name)
    return None, ""


def _parameters(query: bytes) -> Mapping[str, Sequence[str]]:
    try:
        return parse_qs(query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError as error:
        raise ConsulError(400, f"the query cannot be read: {error}") from error


def _is_set(given: Mapping[str, Sequence[str]], name: str) -> bool:
    return name in given and given[name][-1].lower() not in ("0", "false", "f")


def _index(text: str) -> int:
    if not re.fullmatch(r"\d{1,20}", text):
        raise ConsulError(400, f"index: {text[:40]!r} is not a number")
    return int(text)


def _wait_s(text: str) -> float:
    """Parse `wait`, a Go duration. 0 means the default, as in Consul."""
    if text in ("", "0"):
        return DEFAULT_WAIT_S
    if not _DURATION.fullmatch(text):
        raise ConsulError(400, f"wait: {text[:40]!r} is not a duration like 10s or 5m")
    wait_s = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
    return min(wait_s or DEFAULT_WAIT_S, MOST_WAIT_S)
