"""The command `hq-federated`: where settings become objects."""

from __future__ import annotations

import asyncio
import random
import secrets
import socket
import sys
from pathlib import Path
from typing import Any, Final

import click

from federated.clock import FederatedSystemClock
from federated.gateway import FederatedGateway
from federated.locations.channel import Dialer
from federated.locations.config import BadGatewayConfig, ConfigFile, check_plain
from federated.locations.locations import Locations
from federated.server import FederatedServer
from hqapi.rules import DENIED_BY_STATE
from hqclient.credential_files import BadCredentials, CredentialFiles
from hqclient.credentials import Credentials
from serving.auth import security as settings
from serving.auth.security import Security, check_exposure, security_of
from serving.auth.watched_files import BadSecurity
from serving.calls.incoming import RequestIds
from serving.context import ServerContext
from serving.flags import (
    OWN_ADDRESS,
    Bytes,
    Duration,
    Flags,
    InputFile,
    ServerCommand,
    limits_of,
    tracing_to,
    usage_errors,
)
from serving.listeners import Addresses
from serving.process import collect_young, freeze_gc, run, when_told_to_stop
from serving.telemetry.logs import set_up_logs

_FLAGS: Final = Flags("HQ_FEDERATED_")
_locations, _listening = _FLAGS.under("Locations"), _FLAGS.under("Listening")
_processes, _memory = _FLAGS.under("Processes"), _FLAGS.under("Memory")


@click.command(cls=ServerCommand, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="hq-registry", prog_name="hq-federated")
@_locations.option(
    "--config",
    required=True,
    type=InputFile(Path),
    metavar="FILE",
    help="The locations (YAML); reloaded when it changes.",
)
@_listening.option(
    "--grpc",
    default="127.0.0.1:7171",
    type=OWN_ADDRESS,
    metavar="HOST:PORT",
    help="Address to serve gRPC on; port 0: a free one.",
)
@_listening.option(
    "--http",
    default="127.0.0.1:7180",
    type=OWN_ADDRESS,
    metavar="HOST:PORT",
    help="Address to serve HTTP on; port 0: a free one.",
)
@_FLAGS.cors()
@_FLAGS.allowed_hosts()
@_FLAGS.gone_transport()
@_listening.option(
    "--insecure",
    is_flag=True,
    help="Serve on, and connect to locations at, non-loopback addresses without TLS or authentication.",
)
@_locations.option(
    "--location-ca",
    default="",
    type=InputFile(),
    metavar="FILE",
    help="Use TLS with the locations and trust this CA (PEM).",
)
@_locations.option(
    "--location-cert",
    default="",
    type=InputFile(),
    metavar="FILE",
    help="Client certificate of the gateway for the locations (PEM).",
)
@_locations.option("--location-key", default="", type=InputFile(), metavar="FILE", help="Its key (PEM).")
@_locations.option(
    "--location-token-file",
    default="",
    type=InputFile(),
    metavar="FILE",
    help="File with the gateway's own token: for its probes and the lists that it follows only.",
)
@_processes.option("--grace", type=Duration(), default="5s", help="Time for calls to finish at shutdown.")
@_memory.option(
    "--last-good-bytes",
    type=Bytes(),
    default="16MiB",
    help="Responses kept per location, for callers that allow stale ones.",
)
@settings.flags(_FLAGS, "federated", forwards=True)
@_FLAGS.logs()
@_FLAGS.under("Limits").option("--page-bytes", type=Bytes(), default="3MiB", help="Largest page of FindInstances.")
@_FLAGS.limits()
def cli(**given: Any) -> None:
    """Run a federation gateway: several installations of HQ as one.

    It is stateless: run several, and give clients all of them. Each reads --config, queries every location that it
    names, and serves hq.v1.InstanceService for all of them together. See docs/federated.md.
    """
    security, dialer = _security(given)
    try:
        may_be_plain = given["insecure"] or dialer.is_encrypted
        file = ConfigFile(given["config"]) if may_be_plain else ConfigFile(given["config"], check_plain)
    except OSError as error:
        raise click.UsageError(
            f"--config {given['config']}: {error.strerror}: give a file that this user can read"
        ) from error
    except (BadGatewayConfig, UnicodeDecodeError) as error:
        raise click.UsageError(f"--config {given['config']}: {error}") from error
    set_up_logs(given["log_level"], given["log_format"])
    _run(file, given, security, dialer)


@usage_errors(BadSecurity, BadCredentials)
def _security(given: dict[str, Any]) -> tuple[Security | None, Dialer]:
    """The security of the gateway's callers, and its credentials for its locations."""
    files = CredentialFiles(*(given[f"location_{name}"] for name in ("ca", "cert", "key", "token_file")))
    check_exposure(given, forwards=True)
    security = security_of(given, FederatedSystemClock(), None, DENIED_BY_STATE, forwards=True)
    _check_own(files, security)
    return security, Dialer(Credentials(files, prefix="--location-"))


def _check_own(files: CredentialFiles, security: Security | None) -> None:
    """Raises BadSecurity: requests without a token would be forwarded with the gateway's own identity."""
    if (files.cert or files.token_file) and (security is None or security.gate is None):
        raise BadSecurity(
            "--location-cert and --location-token-file need --policy and --jwks: "
            "otherwise all callers would act with the gateway's own rights"
        )


def _run(file: ConfigFile, given: dict[str, Any], security: Security | None, dialer: Dialer) -> None:
    try:
        run(lambda: _serve(file, given, security, dialer))
    except OSError as error:
        click.echo(f"hq-federated: {error}", err=True)
        sys.exit(1)


async def _serve(file: ConfigFile, given: dict[str, Any], security: Security | None, dialer: Dialer) -> None:
    clock, rng = FederatedSystemClock(), random.SystemRandom()
    locations = Locations(file, clock, rng, dialer, given["last_good_bytes"])
    gateway = FederatedGateway(locations, clock, rng, given["page_bytes"])
    name = f"{socket.gethostname()}-federated-{secrets.token_hex(4)}"
    tracing = tracing_to(given["otlp"], "hq-federated", name)
    shared = ServerContext(limits_of(given), clock, RequestIds(name), security, tracing)
    server = FederatedServer(
        gateway,
        shared,
        Addresses(
            given["grpc"],
            given["http"],
            given["grpc_mtls"],
            cors=given["cors_origin"],
            allowed_hosts=given["allowed_host"],
            env="HQ_FEDERATED_",
        ),
        given["grace"],
    )
    when_told_to_stop(server.stop)
    freeze_gc()
    collecting = asyncio.create_task(collect_young())
    await server.serve()
    collecting.cancel()


if __name__ == "__main__":
    cli()
