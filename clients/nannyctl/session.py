"""One run of a command over several installations, each independently, and how it ends the process."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import click

from descriptions.installations import merge_installations, only, parse_option
from descriptions.reading import default_config, read_installations
from hqcli.complaints import complainer
from hqcli.controllers import SHORTEST_CALL_S
from hqcli.documents import BadDocument
from hqcli.exits import Exit, denial_advice, exit_of, is_no_hq
from hqcli.options import DurationParam, credential_options
from hqcli.terminal import warn
from hqclient.credential_files import BadCredentials, CredentialFiles

if TYPE_CHECKING:
    from hqclient.errors import HqApiError

ROUNDS = 3

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InstallationAnswer(Generic[T]):
    """The result from one installation: an answer, or why there is none."""

    installation: str
    answer: T | None
    error: str = ""
    exit: Exit = Exit.OK


@dataclass(frozen=True, slots=True)
class NannyctlSession:
    """The installations to use, from the command line and the configuration.

    Attributes:
        named: installations of the command line.
        configured: those of the configuration file.
        only: names to restrict to; empty: all.
        timeout_s: for each call, retries included.
        credentials: the same for all installations.
    """

    named: Mapping[str, tuple[str, ...]]
    configured: Mapping[str, tuple[str, ...]]
    only: tuple[str, ...]
    timeout_s: float
    credentials: CredentialFiles = field(default_factory=CredentialFiles)

    def known_addresses(self, *described: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """Addresses by name: the command line wins over descriptions, these over the configuration file."""
        try:
            return merge_installations(
                self.named, *described, self.configured, fallback=os.environ.get("HQ_SERVER", "")
            )
        except ValueError as error:
            raise click.UsageError(f"HQ_SERVER: {error}") from None

    def selected_addresses(self, known: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """Addresses that --only selects."""
        try:
            return only(known, self.only)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--only") from None

    async def each(
        self, installations: Mapping[str, tuple[str, ...]], work: Callable[[str, Any], Awaitable[T]]
    ) -> list[InstallationAnswer[T]]:
        """Do `work(name, client)` with every installation at the same time, in order of the mapping.

        A call that failed ends the work with that installation only.
        """
        one = functools.partial(self._one, work)
        return list(await asyncio.gather(*(one(name, addresses) for name, addresses in installations.items())))

    async def _one(
        self, work: Callable[[str, Any], Awaitable[T]], name: str, addresses: tuple[str, ...]
    ) -> InstallationAnswer[T]:
        # Imported here: `nanny --help` and faulty descriptions need no gRPC.
        from hqclient.client import Client, ClientSettings, Credentials, HqApiError
        from hqclient.retry import RetrySettings

        settings = ClientSettings(retry=RetrySettings(max_rounds=ROUNDS))
        try:
            own = Credentials(self.credentials)
            async with Client(addresses, timeout_s=self.timeout_s, settings=settings, credentials=own) as client:
                return InstallationAnswer(name, await work(name, client))
        except BadCredentials as fault:
            return InstallationAnswer(name, None, str(fault), Exit.NOT_ALLOWED)
        except HqApiError as error:
            return InstallationAnswer(
                name, None, _error_message(error, addresses), _exit(exit_of(error, writing=False))
            )


def _error_message(error: HqApiError, addresses: Sequence[str]) -> str:
    """Describe the error and the next step, without the final full stop."""
    if error.code.name == "DEADLINE_EXCEEDED" and not error.from_hq:  # gRPC's own message does not help
        return f"{error.endpoint} did not respond in time. See `hqctl status`, or raise --timeout"
    what = error.message.replace("\n", " ").rstrip(".")
    others = "--installation or HQ_SERVER names others"
    if not error.sent:
        where = f"no server responds ({', '.join(addresses)})"
        return f"{where}: {what}. Is HQ running there (usually port 7071)? {others}"
    if is_no_hq(error):
        return f"{what}. Is {error.endpoint} the gRPC address of an HQ? {others}"
    advice = denial_advice(error)
    return f"{what}; {advice}" if advice else what


def _exit(code: Exit) -> Exit:
    """hqctl's 8 means that HQ was late; ours means that agents were."""
    return Exit.UNAVAILABLE if code is Exit.TIMEOUT else code


def finish(work: Awaitable[Exit]) -> NoReturn:
    """Run to the end and leave with the exit code."""

    async def run() -> Exit:
        return await work

    try:
        sys.exit(asyncio.run(run()))
    except KeyboardInterrupt:
        complain("interrupted; what was sent is kept: run it again to continue.")
        sys.exit(Exit.INTERRUPTED)


complain = complainer("nanny")


def refuse(fault: BadDocument) -> NoReturn:
    """Exit because of faulty documents."""
    for line in str(fault).splitlines():
        complain(line)
    sys.exit(Exit.REFUSED)


def tell_away(asked: InstallationAnswer[Any]) -> None:
    """Say on stderr that an installation is missing."""
    complain(f"{asked.installation}: {asked.error}.")


def with_session(function: F) -> F:
    """Give a command the options that say whom to ask, and a Session as its first argument."""

    @click.option(
        "--installation",
        "named",
        multiple=True,
        metavar="NAME=HOST:PORT,...",
        help="An installation and its replicas; repeatable.",
    )
    @click.option("--only", multiple=True, metavar="NAME", help="Only this installation; repeatable.")
    @click.option(
        "--config", metavar="FILE", envvar="NANNY_CONFIG", help="File with installations. [~/.config/nanny.yaml]"
    )
    @click.option(
        "--timeout",
        "timeout_s",
        type=DurationParam(SHORTEST_CALL_S),
        default="10s",
        show_default=True,
        metavar="SPAN",
        help="Timeout of each call.",
    )
    @credential_options
    @functools.wraps(function)
    def command(
        *args: Any,
        named: tuple[str, ...],
        only: tuple[str, ...],
        config: str | None,
        timeout_s: float,
        credentials: CredentialFiles,
        **kwargs: Any,
    ) -> Any:
        told: dict[str, tuple[str, ...]] = {}
        try:
            for name, addresses in map(parse_option, named):
                told[name] = (*told.get(name, ()), *addresses)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--installation") from None
        path = config or default_config()
        try:
            configured = read_installations(path) if path else {}
        except BadDocument as fault:
            refuse(BadDocument(f"--config {fault}") if config else fault)
        return function(NannyctlSession(told, configured, only, timeout_s, credentials), *args, **kwargs)

    return command  # type: ignore[return-value]


__all__ = ["InstallationAnswer", "NannyctlSession", "complain", "finish", "refuse", "tell_away", "warn", "with_session"]
