"""One run of a command: whom to ask, for how long, and how a failure ends the process."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from hqcli.complaints import complainer
from hqcli.contexts import BadContextFile, Context, ContextFile, config_path, load
from hqcli.exits import Exit, exit_of
from hqcli.options import FILES, DurationParam, credential_flags
from hqclient.credential_files import BadCredentials, CredentialFiles
from hqctl.asking.cluster import named_cluster
from hqctl.asking.failures import LOOK, sentence
from hqctl.asking.options import addresses

if TYPE_CHECKING:
    from hqclient.client import Client, HqApiError
    from hqpb.v1 import service_pb2 as pb

DEFAULT_SERVER = "127.0.0.1:7071"
DEFAULT_TIMEOUT_S = 10.0
A_CALL_S = 0.001  # the shortest timeout; 0 would mean the default

F = TypeVar("F", bound=Callable[..., Any])
Work = Callable[["Client"], Awaitable[Exit]]


class WrongCluster(Exception):
    """The server that answered belongs to another cluster than the one named; str() says which, and what to do."""


@dataclass(frozen=True, slots=True)
class HqctlSession:
    """Whom to ask, as whom, and for how long, in seconds per call."""

    servers: tuple[str, ...]
    timeout_s: float
    credentials: CredentialFiles = field(default_factory=CredentialFiles)
    verbose: bool = False
    cluster: str = ""

    def for_cluster(self, where: pb.InstanceFilter) -> HqctlSession:
        """With ids, --cluster is no filter: it names the cluster to ask, and is removed from the filter."""
        if len(where.cluster) != 1:
            return self
        cluster = where.cluster.pop()
        return replace(self, cluster=cluster)

    def run(self, work: Work, *, writing: bool = False, look: str = LOOK) -> NoReturn:
        """Do `work` with a client and end the process with its exit code. A failed call becomes one line.

        Args:
            look: the command that shows whether a write took place.
        """
        try:
            sys.exit(asyncio.run(self._run(work, writing, look)))
        except KeyboardInterrupt:
            sys.exit(Exit.INTERRUPTED)

    def client(self, servers: tuple[str, ...] = ()) -> Client:
        """A client of these servers; if none are given, of all. Raises BadCredentials."""
        # Imported here: `hqctl --help` and mistakes on the command line need no gRPC.
        from hqclient.client import Client, ClientSettings, Credentials
        from hqclient.retry import RetrySettings
        from hqctl.asking.connecting import channel_factory, metadata_source

        credentials = Credentials(self.credentials)
        return Client(
            servers or self.servers,
            timeout_s=self.timeout_s,
            # A person waits: three rounds over all replicas, then the error.
            settings=ClientSettings(retry=RetrySettings(max_rounds=3)),
            credentials=credentials,
            channel_factory=channel_factory(credentials, verbose=self.verbose),
            metadata=metadata_source(self.cluster),
        )

    async def _run(self, work: Work, writing: bool, look: str) -> int:
        from hqclient.client import HqApiError

        try:
            async with self.client() as client:
                return int(await work(client))
        except HqApiError as error:
            return int(self.tell(error, writing=writing, look=look))
        except WrongCluster as wrong:
            complain(str(wrong))
            return int(Exit.REFUSED)
        except BadCredentials as fault:
            complain(str(fault))
            return int(Exit.NOT_ALLOWED)

    def tell(self, error: HqApiError, *, writing: bool, subject: str = "", look: str = LOOK) -> Exit:
        """Say on stderr what went wrong; return the exit code for it."""
        prefix = f"{subject}: " if subject else ""
        if not error.sent and len(self.servers) > 1:
            prefix += f"no server responds ({', '.join(self.servers)}): "
        complain(prefix + sentence(error, writing=writing, look=look))
        return exit_of(error, writing=writing)


complain = complainer("hqctl")


def connection_options(*timeout_names: str) -> Callable[[F], F]:
    """The options that say whom to ask and how; they stand before or after the name of a command."""
    options = (
        click.option("--server", "servers", multiple=True, metavar="HOST:PORT", help="A replica; repeatable."),
        click.option("--context", "context", metavar="NAME", help="Context of the config file to use."),
        click.option(
            *timeout_names,
            "call_timeout",
            type=DurationParam(A_CALL_S),
            help="Timeout of each call, e.g. 5s. Default: 10s.",
        ),
        click.option("-v", "--verbose", "verbose", is_flag=True, help="Show each call on stderr."),
    )

    def decorate(function: F) -> F:
        return functools.reduce(lambda f, option: option(f), reversed(options), credential_flags(function))

    return decorate


def with_session(function: F) -> F:
    """Give a command the options of connections, and a Session as its first argument."""
    return _with_session(function, "--timeout", "--request-timeout")


def with_session_and_timeout(function: F) -> F:
    """As `with_session`, for a command that has its own --timeout, for all of its work."""
    return _with_session(function, "--request-timeout")


def _with_session(function: F, *timeout_names: str) -> F:
    @connection_options(*timeout_names)
    @click.pass_context
    @functools.wraps(function)
    def command(
        ctx: click.Context,
        /,
        *args: Any,
        servers: tuple[str, ...],
        context: str | None,
        call_timeout: float | None,
        verbose: bool,
        credentials: CredentialFiles,
        **kwargs: Any,
    ) -> Any:
        root: dict[str, Any] = ctx.find_root().params
        session = _session(
            servers or root.get("servers") or (),
            context or root.get("context") or "",
            call_timeout or root.get("call_timeout"),
            verbose or bool(root.get("verbose")),
            named_cluster(ctx),
            credentials.over(CredentialFiles(**{name: root.get(name) or "" for name in FILES})),
        )
        return function(session, *args, **kwargs)

    return command  # type: ignore[return-value]


def _session(
    named: tuple[str, ...],
    context_name: str,
    timeout_s: float | None,
    verbose: bool,
    cluster: str,
    credentials: CredentialFiles,
) -> HqctlSession:
    context = _context(named, context_name)
    # A token from the environment must not be sent to the installation that a context names.
    known = context.credentials if context.name else CredentialFiles.from_environment()
    return HqctlSession(
        addresses(named or context.servers),
        timeout_s or context.timeout_s or DEFAULT_TIMEOUT_S,
        credentials.over(known),
        verbose,
        cluster,
    )


def _context(named: tuple[str, ...], context_name: str) -> Context:
    """The context named; else HQ_SERVER or --server without any credentials; else the current one of the config."""
    from_environment = os.environ.get("HQ_SERVER", "")
    if not context_name and (named or from_environment):
        return Context("", (from_environment,) if from_environment else ())
    config = loaded_config()
    if context_name or config.current:
        try:
            return config.context(context_name)
        except BadContextFile as fault:
            raise click.UsageError(str(fault)) from None
    return Context("", (DEFAULT_SERVER,))


def loaded_config() -> ContextFile:
    """The user's config file."""
    try:
        return load(config_path())
    except BadContextFile as fault:
        raise click.UsageError(str(fault)) from None
