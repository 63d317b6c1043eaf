"""Flags that every server has, the formats of their values, and the help that lists them by group."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from serving.encoding.jsonio import MAX_DEPTH
from serving.limiting.limits import Limits
from serving.sockets import address_fault
from serving.telemetry.logs import FORMATS

if TYPE_CHECKING:
    from serving.telemetry.tracing import Tracing

F = TypeVar("F", bound=Callable[..., Any])

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Duration(click.ParamType[float]):
    """Seconds from values like 3s, 10m, 1.5h or 500ms."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        parts = re.findall(r"([\d.]+)(ms|s|m|h|d)", value)
        if not parts or "".join(a + b for a, b in parts) != value:
            self.fail(f"{value!r} is not a valid duration: write 3s, 10m, 1.5h or 500ms", param, ctx)
        try:
            return sum(float(number) * _UNITS_S[unit] for number, unit in parts)
        except ValueError:
            self.fail(f"{value!r} is not a valid duration: write 3s, 10m, 1.5h or 500ms", param, ctx)


class Bytes(click.ParamType[int]):
    """Bytes from values like 4MiB, 128k or 1048576."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+)([kmg]?)(i?b)?", value.lower())
        if match is None:
            self.fail(f"{value!r} is not a valid size: write 4MiB, 128KiB or a number of bytes", param, ctx)
        return int(match[1]) * _UNITS_BYTES[match[2]]


class AddressParam(click.ParamType[str]):
    """One or more HOST:PORT, separated by commas, after NAME= if the metavar has that; the text is not changed.

    Args:
        is_own: it is an address to listen on, where port 0 takes a free one; else addresses to call.
        may_be_url: a scheme before it is ignored.
    """

    name = "address"

    def __init__(self, *, is_own: bool = False, may_be_url: bool = False) -> None:
        self._is_own, self._may_be_url = is_own, may_be_url

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        listed = str(value)
        if param is not None and str(param.metavar).startswith("NAME="):
            listed = listed.partition("=")[2]  # without NAME=, the flag's reader says what to write
        for part in [listed] if self._is_own else listed.split(","):
            address = part.strip()
            if self._may_be_url:
                address = re.sub(r"^https?://|^dns:///|/+$", "", address)
            if address and (fault := address_fault(address, is_own=self._is_own)):
                self.fail(f"{address}: {fault}", param, ctx)
        return str(value)


class InputFile(click.Path):
    """A file that this user may read, `~` expanded; empty: none. It is not opened: it may be a pipe."""

    def __init__(self, path_type: type[Any] | None = None, *, allow_dash: bool = False) -> None:
        super().__init__(path_type=path_type, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value or (self.allow_dash and value == "-"):
            return super().convert(value, param, ctx)
        path = os.path.expanduser(value)  # noqa: PTH111  # `~nobody` stays as it is: no such file exists
        if fault := _file_fault(path):
            self.fail(f"{value}: cannot be read: {fault}: give a file that this user can read", param, ctx)
        return super().convert(path, param, ctx)


def _file_fault(path: str) -> str:
    try:
        is_folder = stat.S_ISDIR(Path(path).stat().st_mode)
    except OSError as error:
        return str(error.strerror)
    return "Is a directory" if is_folder else "" if os.access(path, os.R_OK) else "Permission denied"


OWN_ADDRESS: Final = AddressParam(is_own=True)
CALLED_ADDRESSES: Final = AddressParam()


@contextmanager
def listening_by(flag: str, prefix: str) -> Iterator[None]:
    """Make the error for an address that cannot be bound name the flag and the variable that chose it."""
    try:
        yield
    except OSError as error:
        chosen = f"choose another address with {flag} or {_variable(prefix, flag)}"
        raise OSError(f"{error.strerror or error} ({chosen})") from error


def _variable(prefix: str, flag: str) -> str:
    return prefix + flag.lstrip("-").replace("-", "_").upper()


class _Flag(click.Option):
    """A flag that knows its group."""

    def __init__(self, *args: Any, group: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


class ServerCommand(click.Command):
    """A command with so many flags that its help lists them by group, in the order in which groups first appear."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        others: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                (groups.setdefault(param.group, []) if isinstance(param, _Flag) else others).append(record)
        for heading, records in (*groups.items(), ("Other", others)):
            with formatter.section(heading):
                formatter.write_dl(records)


class Flags:
    """Makes flags that are environment variables, too: with the prefix HQ_, `--max-calls` is HQ_MAX_CALLS.

    Args:
        group: the heading under which the help of a ServerCommand lists them.
    """

    def __init__(self, prefix: str, group: str = "Other") -> None:
        self._prefix, self._group = prefix, group

    def under(self, group: str) -> Flags:
        """Flags with the same prefix in this group."""
        return Flags(self._prefix, group)

    def option(self, name: str, *parameter: str, **attributes: Any) -> Callable[[F], F]:
        """A flag with its environment variable, which the help shows."""
        envvar = _variable(self._prefix, name)
        return click.option(
            name,
            *parameter,
            cls=_Flag,
            group=self._group,
            envvar=envvar,
            show_envvar=True,
            show_default=attributes.get("default") != "",
            **attributes,
        )

    def removed_flag(self, name: str, instead: str, *, default: str = "") -> Callable[[F], F]:
        """A flag of the last release: it and its variable are refused with what to do now; its default is taken."""
        envvar = _variable(self._prefix, name)

        def refuse(_: click.Context, __: click.Parameter, value: str | None) -> None:
            if value not in (None, default):
                raise click.UsageError(f"{name} ({envvar}) is gone: {instead}")

        return click.option(name, expose_value=False, hidden=True, is_eager=True, envvar=envvar, callback=refuse)

    def gone_transport(self) -> Callable[[F], F]:
        """Accept no `--transport` but the default: the servers of grpc.aio and uvicorn are gone."""
        instead = (
            "every address answers all protocols, and --grpc-mtls demands a client's certificate: take the flag out"
        )
        return self.removed_flag("--transport", instead, default="own")

    def limits(self, *, agents: bool = False) -> Callable[[F], F]:
        """A flag for each of the transports' limits. `agents`: the server has a listener for agents."""
        fields = {field.name: field for field in dataclasses.fields(Limits)}
        texts = {name: text for name, text in _LIMITS.items() if agents or name != "max_agents"}
        return together(
            self.removed_flag("--min-ping-interval", "pings have a budget that is no setting: take it out"),
            *(_limit(self.under("Limits"), fields[name], text) for name, text in texts.items()),
            *(
                _limit(self.under("Connections and compression"), fields[name], text)
                for name, text in _CONNECTIONS.items()
            ),
        )

    def cors(self) -> Callable[[F], F]:
        """Who may call from a browser."""
        text = "Allow browser calls from this origin (https://host); * for all. Repeatable."
        return self.under("Listening").option("--cors-origin", multiple=True, metavar="ORIGIN", help=text)

    def allowed_hosts(self) -> Callable[[F], F]:
        """Host names that a server without authentication answers to."""
        text = (
            "Without authentication, also answer plain HTTP/1.1 requests for this host (*.hq.example: all names below; "
            "*: any), beside IP addresses, localhost and the names it listens on. Repeatable."
        )
        return self.under("Listening").option("--allowed-host", multiple=True, metavar="HOST", help=text)

    def logs(self) -> Callable[[F], F]:
        """Add the flags of logs and traces."""
        levels = click.Choice(["debug", "info", "warning", "error"])
        formats = "Log format: text, or json with one object per line."
        traces = "Send traces to this collector (OTLP over HTTP); needs OpenTelemetry's packages (docs/logs.md)."
        option = self.under("Logs and traces").option
        return together(
            option("--log-level", type=levels, default="info", help="Log level."),
            option("--log-format", type=click.Choice(FORMATS), default="text", help=formats),
            option("--otlp", default="", metavar="URL", help=traces),
        )


@contextmanager
def usage_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds say that a flag is wrong: raise UsageError instead. Also a decorator."""
    try:
        yield
    except kinds as error:
        raise click.UsageError(str(error)) from error


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several flags as one decorator, shown in this order."""

    def decorate(function: F) -> F:
        for each in reversed(options):
            function = each(function)
        return function

    return decorate


def _limit(flags: Flags, field: dataclasses.Field[Any], text: str) -> Callable[[F], F]:
    """The flag of one limit: `--max-calls` for max_calls, `--keep-alive 75s` for keep_alive_s."""
    is_duration = field.name.endswith("_s") and not field.name.endswith(("_per_peer_s", "_per_s"))
    kind: Any = Duration() if is_duration else Bytes() if "_bytes" in field.name else type(field.default)
    default: Any = field.default
    if is_duration:
        default = f"{default:g}s"
    elif isinstance(kind, Bytes):
        default = f"{default >> 20}MiB" if default >= 1 << 20 else f"{default >> 10}KiB"
    name = "--" + (field.name.removesuffix("_s") if is_duration else field.name).replace("_", "-")
    return flags.option(name, field.name, type=kind, default=default, help=text)


def limits_of(given: Mapping[str, Any]) -> Limits:
    """The limits that the flags say. Raises UsageError."""
    if given.get("max_json_depth", 0) > MAX_DEPTH:
        raise click.UsageError(f"--max-json-depth {given['max_json_depth']}: must be at most {MAX_DEPTH}")
    return Limits(**{field.name: given[field.name] for field in dataclasses.fields(Limits) if field.name in given})


def tracing_to(endpoint: str, service: str, instance: str) -> Tracing | None:
    """Traces to this collector; None: nobody asked for them. Raises UsageError if the packages are missing."""
    if not endpoint:
        return None
    if not endpoint.startswith(("http://", "https://")):
        raise click.UsageError(f"--otlp {endpoint}: write the collector's URL, e.g. http://127.0.0.1:4318")
    try:
        from serving.telemetry.tracing import Tracing
    except ImportError as error:
        packages = "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
        words = f"--otlp needs packages that are not installed: {packages} ({error})"
        raise click.UsageError(words) from None
    return Tracing.to(endpoint, service, instance)


_LIMITS = {
    "max_request_bytes": "Largest request, after decompression.",
    "max_response_bytes": "Largest response, or message of a stream.",
    "max_bodies_bytes": "Memory for requests being received or held: HTTP bodies, large requests, "
    "requests of open watches.",
    "max_bodies_bytes_per_peer": "The same limit, per client address.",
    "max_answers_bytes": "Bytes of responses not read by clients yet, in total.",
    "max_answers_bytes_per_peer": "The same limit, per client address.",
    "max_json_depth": f"Nesting depth of JSON requests; at most {MAX_DEPTH}.",
    "max_header_bytes": "Size of the headers or metadata of one request.",
    "max_calls": "Concurrent calls, over all transports.",
    "max_calls_per_peer": "The same limit, per client address, which all callers of a federation gateway share.",
    "max_streams": "Concurrent watches, over all transports.",
    "max_streams_per_peer": "The same limit, per client address.",
    "max_agents": "Connections, calls and watches on the agents' listener, independent of all other callers.",
    "max_calls_per_peer_s": "Calls per second of one identity, or of one address without authentication; 0: no limit.",
}
_CONNECTIONS = {
    "max_connections": "Open connections. An agents' listener, where there is one, has a limit of its own.",
    "max_connections_per_peer": "The same limit, per client address.",
    "max_streams_per_connection": "Concurrent calls on one HTTP/2 connection.",
    "max_connection_age_s": "Ask clients to reconnect after this time, so that load spreads.",
    "max_connection_age_grace_s": "Time for its calls to finish after that.",
    "max_connection_idle_s": "Close HTTP/2 connections (gRPC is one) without calls after this time.",
    "max_stream_age_s": "End watches and other streams after this time; clients resume at any replica.",
    "keep_alive_s": "Close idle HTTP/1.1 connections after this time.",
    "slow_request_s": "Longest time from the first to the last byte of a request.",
    "stalled_write_s": "Disconnect a client that reads less than --min-read-bytes-per-s for this time.",
    "min_read_bytes_per_s": "Slowest allowed reading while responses are waiting.",
    "send_buffer_bytes": "Kernel send buffer of one connection.",
    "ping_interval_s": "Ping idle HTTP/2 connections at this interval.",
    "ping_timeout_s": "Close them if they do not answer within this time.",
    "gzip_min_bytes": "Never compress smaller HTTP responses.",
    "gzip_level": "Compression level: 1 is fastest, 9 is smallest.",
}
