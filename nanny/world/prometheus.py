"""Questions to Prometheus: only to those that the configuration lists, with the credential that it gives for each."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from control.outgoing import OutgoingCallFailed, OutgoingHttp
from descriptions.fields import Fields
from hqcli.documents import BadDocument, value_of

_TIMEOUT_S: Final = 5.0
_PATH: Final = "/api/v1/query"
_SERVICE: Final = "{service}"


class NoReading(Exception):
    """There is no answer, or none that can be read: nothing is known of the values."""


class NoAnswer(NoReading):
    """A Prometheus does not answer at all, which takes up to 5 s to find out."""


@dataclass(frozen=True, slots=True)
class PrometheusSource:
    """Where a Prometheus is, and how it is asked.

    Attributes:
        token_file: with a bearer token, read at each question; empty: none is sent.
        tls: with its CA; None: those of the system.
        parameters: more of the URL's, to limit a question to its service's series: `{service}` is that service's name.
    """

    url: str
    token_file: str = ""
    tls: ssl.SSLContext | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


class PrometheusPort:
    """Asks Prometheus servers by their names in the configuration."""

    def __init__(self, sources: Mapping[str, PrometheusSource], http: OutgoingHttp | None = None) -> None:
        self._sources, self._http = sources, http or OutgoingHttp()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._sources)

    async def read(self, name: str, query: str, service: str) -> list[float]:
        """Run the query for a service now; return the values it finds. Raises NoReading."""
        source = self._sources.get(name)
        if source is None:
            raise NoReading(f"Nanny's configuration has no Prometheus {name} any more")
        try:
            headers = _headers(source)
            limited = {key: text.replace(_SERVICE, service) for key, text in source.parameters.items()}
            reply = await self._http.send(
                "POST", f"{source.url}{_PATH}", form={"query": query}, query=limited, headers=headers, tls=source.tls,
                timeout_s=_TIMEOUT_S,
            )  # fmt: skip
        except (OutgoingCallFailed, OSError, ValueError) as error:
            raise NoAnswer(f"Prometheus {name} does not answer: {error}") from None
        answer = reply.json()
        if not reply.is_success or not isinstance(answer, dict) or answer.get("status") != "success":
            said = answer.get("error", "") if isinstance(answer, dict) else ""
            raise NoReading(f"Prometheus {name} answers {reply.status}: {str(said)[:200] or 'no JSON of its API'}")
        try:
            return _values(answer["data"])
        except (KeyError, TypeError, ValueError, IndexError):
            raise NoReading(f"Prometheus {name}: the result is no vector and no scalar") from None

    async def close(self) -> None:
        await self._http.aclose()


def _headers(source: PrometheusSource) -> dict[str, str]:
    if not source.token_file:
        return {}
    return {"authorization": f"Bearer {Path(source.token_file).read_text(encoding='ascii').strip()}"}


def _values(data: Mapping[str, Any]) -> list[float]:
    if data["resultType"] == "scalar":
        return [float(data["result"][1])]
    if data["resultType"] != "vector":
        raise ValueError(data["resultType"])
    return [float(one["value"][1]) for one in data["result"]]


def read_prometheus(path: str) -> dict[str, PrometheusSource]:
    """Read the servers of a file: `prometheus: {NAME: {url: ..., ca: FILE, token-file: FILE, parameters: {...}}}`.

    Raises:
        BadDocument: it cannot be read.
    """
    try:
        value = value_of(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadDocument(f"{path}: cannot be read: {error.strerror}: give a file that this user can read") from None
    except (UnicodeDecodeError, BadDocument) as error:
        raise BadDocument(f"{path}: {error}") from None
    faults: list[str] = []
    listed = value.get("prometheus") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(listed, dict):
        raise BadDocument(f"{path}: write `prometheus: {{main: {{url: https://HOST:9090}}}}`")
    found = {str(name): _source(one, f"prometheus.{name}", faults) for name, one in listed.items()}
    if faults:
        raise BadDocument("\n".join(f"{path}: {fault}" for fault in faults))
    return found


def _source(value: Any, place: str, faults: list[str]) -> PrometheusSource:
    fields = Fields(value, place, faults)
    url, ca, token_file = (str(fields.raw(name) or "") for name in ("url", "ca", "token-file"))
    parameters = fields.raw("parameters") or {}
    fields.done()
    if not isinstance(parameters, dict) or not all(isinstance(text, str) for text in parameters.values()):
        faults.append(f"{place}.parameters: write NAME: TEXT, a line each, such as `service: '{_SERVICE}'`")
        parameters = {}
    elif "query" in parameters:
        faults.append(f"{place}.parameters.query: is that of the check: leave it out")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        faults.append(f"{place}.url: {url[:80]!r} is no address: write http://HOST:PORT or https://HOST:PORT")
    tls = None
    try:
        tls = ssl.create_default_context(cafile=ca) if ca else None
        if token_file:
            Path(token_file).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        faults.append(f"{place}: {ca or token_file} cannot be read: {error}")
    return PrometheusSource(url.rstrip("/"), token_file, tls, {str(name): text for name, text in parameters.items()})
