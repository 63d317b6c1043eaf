"""Controllers (CMS, Nanny, Wall-E): where their processes are, as flags, variables and the config file say."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hqcli.contexts import BadContextFile, Context, config_path, load
from hqcli.options import FILES, DurationParam, address_of, credential_flags
from hqclient.credential_files import CredentialFiles

if TYPE_CHECKING:
    from hqclient.errors import HqApiError

SHORTEST_CALL_S: Final = 0.001  # 0 would read as the default
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Whom:
    """Whom to ask, and as whom. timeout_s: from the context; None: not set there."""

    addresses: tuple[str, ...]
    credentials: CredentialFiles
    timeout_s: float | None


@dataclass(frozen=True, slots=True)
class ControllerOption:
    """How people say where a controller is.

    Attributes:
        name: as messages call it.
        flag: the flag that names its processes.
        variable: the environment variable that does.
        default: its address if nothing else names one.
        field: the field of a context that names it; empty: there is none.
        prefix: of the environment variables that name credential files.
    """

    name: str
    flag: str
    variable: str
    default: str
    field: str = ""
    prefix: str = "HQ_"

    def whom(self, given: str, context_name: str) -> Whom:
        """The flag, else the context that was named, else the variable, else the current context, else the default.

        Credentials from the environment are never sent to servers that a context names.

        Raises:
            UsageError: there is no such context, or it does not say where the controller is.
        """
        from_environment = os.environ.get(self.variable, "")
        if context_name or not (given or from_environment):
            context = self._context(context_name)
            named = given or ",".join(context.controllers.get(self.field, ())) if context else ""
            if context is not None and named:
                return Whom(self._addresses(named), context.credentials, context.timeout_s)
            if context is not None and context_name:
                lacks = f"context {context_name} names no servers of {self.name}"
                raise click.UsageError(f"{lacks}: add `{self.field}: [HOST:PORT]` in {config_path()}")
        addresses = self._addresses(given or from_environment or self.default)
        return Whom(addresses, CredentialFiles.from_environment(prefix=self.prefix), None)

    def unreachable(self, error: HqApiError) -> str:
        """The message if no process answered: what happened, and what to do."""
        where = f"{self.name} at {error.endpoint}"
        others = f"name another with {self.flag} or {self.variable}"
        why = error.message.rpartition("last error: ")[2]
        reason = why.removeprefix(f"cannot connect to {error.endpoint}: ")
        if error.code.name == "DEADLINE_EXCEEDED":
            found = f" ({reason})" if reason != why else ""
            return f"{where} did not respond in time{found}: raise --timeout, or {others}"
        return f"{where} cannot be reached ({reason}): {others}"

    def _context(self, name: str) -> Context | None:
        """The named context; else the current one."""
        if not self.field:
            return None
        try:
            config = load(config_path())
            return config.context(name) if name or config.current else None
        except BadContextFile as error:
            raise click.UsageError(str(error)) from None

    def _addresses(self, text: str) -> tuple[str, ...]:
        port = int(self.default.rpartition(":")[2])
        try:
            named = tuple(address_of(part, port) for part in text.split(",") if part.strip())
        except ValueError as error:
            raise click.BadParameter(f"{error}; or set {self.variable}", param_hint=self.flag) from None
        if not named:
            raise click.BadParameter("is empty: write HOST:PORT", param_hint=self.flag)
        return named


def controller_options(
    controller: ControllerOption, made: Callable[[tuple[str, ...], float, CredentialFiles], Any]
) -> Callable[[F], F]:
    """Give a command the options that say where a controller is; `made` makes its first argument of them.

    On a group they may also come before the command. The group itself does not run if a command follows.
    """
    options = [
        click.option(
            controller.flag,
            "addresses",
            metavar="HOST:PORT,...",
            help=f"Processes of {controller.name} (or {controller.variable}). Default: {controller.default}.",
        ),
        click.option(
            "--timeout",
            "call_timeout",
            type=DurationParam(SHORTEST_CALL_S),
            metavar="SPAN",
            help="Timeout of each call, e.g. 5s. Default: 10s.",
        ),
    ]
    if controller.field:
        text = "Context of the config file to use."
        options.insert(1, click.option("--context", "context", metavar="NAME", help=text))

    def decorate(function: F) -> F:
        @click.pass_context
        @functools.wraps(function)
        def command(ctx: click.Context, /, *args: Any, **kwargs: Any) -> Any:
            if ctx.invoked_subcommand is not None:
                return None
            for name in ("addresses", "call_timeout", "context", "credentials"):
                kwargs.pop(name, None)
            whom = controller.whom(_option_value(ctx, "addresses") or "", _option_value(ctx, "context") or "")
            credentials = CredentialFiles()
            for level in _levels(ctx):
                credentials = credentials.over(CredentialFiles(**{name: level.get(name) or "" for name in FILES}))
            timeout_s = _option_value(ctx, "call_timeout") or whom.timeout_s or 10.0
            return function(made(whom.addresses, timeout_s, credentials.over(whom.credentials)), *args, **kwargs)

        made_of: Any = credential_flags(command)
        return functools.reduce(lambda f, option: option(f), reversed(options), made_of)  # type: ignore[no-any-return]

    return decorate


def _levels(ctx: click.Context | None) -> Iterator[dict[str, Any]]:
    """The parameters of a command, and of the groups above it."""
    while ctx is not None:
        yield ctx.params
        ctx = ctx.parent


def _option_value(ctx: click.Context, name: str) -> Any:
    return next((level[name] for level in _levels(ctx) if level.get(name)), None)
