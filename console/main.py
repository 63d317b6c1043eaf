"""The command `hq-console`: where settings become objects."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Any, Final

import click

from console.backends.asking import OF_HQ, OWN_AUDIENCE
from console.backends.controllers import CmsClient, NannyClient, WalleClient
from console.backends.history import HistoryClient
from console.backends.registry import RegistryClient
from console.backends.remote import Remote
from console.backends.servers import Servers
from console.server import ConsoleServer
from hqcli.completion import completion
from hqclient.credential_files import BadCredentials, CredentialFiles
from hqclient.credentials import Credentials
from serving.auth.security import COMMON_TEXT, Security, security_of
from serving.auth.watched_files import BadSecurity
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.flags import CALLED_ADDRESSES, OWN_ADDRESS, Flags, InputFile, ServerCommand, limits_of, usage_errors
from serving.process import freeze_gc, relax_gc, run, when_told_to_stop
from serving.sockets import is_loopback
from serving.telemetry.logs import set_up_logs

_FLAGS: Final = Flags("HQ_CONSOLE_")
_servers, _listening, _security = (_FLAGS.under(group) for group in ("Servers", "Listening", "Security"))
_LEAST_KEY_BYTES: Final = 32
_PARTS: Final[Any] = (
    ("Nanny", "nanny", NannyClient),
    ("CMS", "cms", CmsClient),
    ("Wall-E", "walle", WalleClient),
    ("The recorder", "recorder", HistoryClient),
)  # the second is the flag, and the field of Servers
_NO_CALLERS: Final = dict.fromkeys(
    ("client_ca", "trust_domain", "grpc_mtls", "jwks", "issuer", "policy", "audit_log"), ""
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="hq-registry", prog_name="hq-console")
def cli() -> None:
    """Serve web pages over HQ, and over the CMS, Nanny and Wall-E if they run."""


@cli.command(cls=ServerCommand)
@_servers.option(
    "--hq",
    multiple=True,
    default=("127.0.0.1:7071",),
    type=CALLED_ADDRESSES,
    metavar="HOST:PORT",
    help="HQ's replicas, or the federation gateways. Repeatable.",
)
@_servers.option(
    "--location",
    multiple=True,
    type=CALLED_ADDRESSES,
    metavar="NAME=HOST:PORT,...",
    help="Behind a gateway: a cluster and its replicas, for its guard, events and planned work. Repeatable.",
)
@_servers.option(
    "--cms",
    multiple=True,
    type=CALLED_ADDRESSES,
    metavar="HOST:PORT",
    help="The CMS's processes: tasks and budgets. Repeatable.",
)
@_servers.option(
    "--walle",
    multiple=True,
    type=CALLED_ADDRESSES,
    metavar="HOST:PORT",
    help="Wall-E's processes: hosts and repairs. Repeatable.",
)
@_servers.option(
    "--nanny",
    multiple=True,
    type=CALLED_ADDRESSES,
    metavar="HOST:PORT",
    help="Nanny's processes: snapshots and roll-outs. Repeatable.",
)
@_servers.option(
    "--recorder",
    multiple=True,
    type=CALLED_ADDRESSES,
    metavar="HOST:PORT",
    help="The recorder: what happened before. Repeatable.",
)
@_listening.option(
    "--http",
    default="127.0.0.1:7580",
    type=OWN_ADDRESS,
    metavar="HOST:PORT",
    help="Address to serve on; port 0: a free one.",
)
@_listening.option(
    "--public-url",
    default="",
    metavar="URL",
    help="URL by which users reach the console, if not by --http: https://console.example.",
)
@_security.option(
    "--session-key",
    default="",
    type=InputFile(),
    metavar="FILE",
    help="File with at least 32 random bytes; sessions then outlive a restart, and several consoles share them.",
)
@_security.option(
    "--tls-cert",
    default="",
    type=InputFile(),
    metavar="FILE",
    help="Serve TLS with this certificate chain (PEM); reloaded when it changes.",
)
@_security.option("--tls-key", default="", type=InputFile(), metavar="FILE", help="Its private key (PEM).")
@_security.option("--common-audience", is_flag=True, help=COMMON_TEXT)
@_servers.option(
    "--server-ca",
    default="",
    type=InputFile(),
    metavar="FILE",
    help="Use TLS with all servers and trust this CA (PEM).",
)
@_listening.option(
    "--insecure", is_flag=True, help="Serve on a non-loopback address without TLS, or pass tokens on without TLS."
)
@_FLAGS.logs()
@_FLAGS.limits()
def serve(**given: Any) -> None:
    """Serve the pages.

    It keeps no state: users sign in with their own tokens, which it passes on; it has no rights of its own. On
    loopback, with servers without authentication, it works without signing in. See docs/console.md.
    """
    set_up_logs(given["log_level"], given["log_format"])
    security, credentials, key = _check_options(given)
    try:
        run(lambda: _serve(given, security, credentials, key))
    except OSError as error:
        click.echo(f"hq-console: {error}", err=True)
        sys.exit(1)


@usage_errors(BadSecurity, BadCredentials, OSError)
def _check_options(given: dict[str, Any]) -> tuple[Security | None, Credentials | None, bytes]:
    """Raises UsageError, naming the flag."""
    if not (is_loopback(given["http"]) or given["tls_cert"] or given["insecure"]):
        raise click.UsageError(
            f"--http {given['http']} is reachable from other machines: give --tls-cert and --tls-key, "
            "or serve on 127.0.0.1, or give --insecure if the network itself is protected"
        )
    addresses = [
        *given["hq"],
        *(one for part in _PARTS for one in given[part[1]]),
        *(one for listed in _locations(given).values() for one in listed),
    ]
    if not (given["server_ca"] or given["insecure"] or all(map(is_loopback, addresses))):
        raise click.UsageError(
            "tokens would be sent to other machines in plain text: give --server-ca for TLS with all servers, or "
            "--insecure if the network itself is protected"
        )
    security = security_of({**_NO_CALLERS, **given}, SystemClock(), None)
    files = CredentialFiles(given["server_ca"], "", "", "")
    return security, Credentials(files, prefix="--server-") if given["server_ca"] else None, _key(given["session_key"])


def _key(name: str) -> bytes:
    if not name:
        return secrets.token_bytes(_LEAST_KEY_BYTES)
    key = Path(name).read_bytes()
    if len(key) < _LEAST_KEY_BYTES:
        raise click.UsageError(f"--session-key {name}: has {len(key)} bytes, at least {_LEAST_KEY_BYTES} are needed")
    return key


def _locations(given: dict[str, Any]) -> dict[str, list[str]]:
    found = {}
    for one in given["location"]:
        name, _, addresses = one.partition("=")
        if not name or not addresses:
            raise click.UsageError(f"--location {one}: write NAME=HOST:PORT, several addresses separated by commas")
        found[name] = addresses.split(",")
    return found


async def _serve(given: dict[str, Any], security: Security | None, credentials: Credentials | None, key: bytes) -> None:
    common = OF_HQ if given["common_audience"] else frozenset()
    parts: dict[str, Any] = {
        flag: make(Remote(name, given[flag], credentials, common | {flag}))
        for name, flag, make in _PARTS
        if given[flag]
    }
    registry = RegistryClient(given["hq"], _locations(given), credentials)
    servers = Servers(registry, **parts, audiences=common | {OWN_AUDIENCE})
    shared = ServerContext(limits_of(given), SystemClock(), RequestIds("console"), security)
    server = ConsoleServer(
        servers,
        shared,
        given["http"],
        key,
        public_url=given["public_url"],
        is_open=is_loopback(given["http"]) or given["insecure"],
    )
    scheme = "https" if given["tls_cert"] else "http"
    server.listening.add_done_callback(
        lambda listening: click.echo(f"Console: {given['public_url'] or f'{scheme}://{listening.result().http}'}")
    )
    when_told_to_stop(server.stop)
    relax_gc()  # a page of thousands of rows becomes garbage at once; by default GC would also scan all modules
    freeze_gc()
    await server.serve()


cli.add_command(completion)

if __name__ == "__main__":
    cli()
