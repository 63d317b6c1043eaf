"""Secrets: where values come from, how they are delivered. A value is in no log, no error and no command line."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hqpb.v1.instance_pb2 import SecretDescriptor
from instancectl.background import start_in_own_thread
from instancectl.content import PrepareFailed
from instancectl.content.directories import inside
from instancectl.files import write_atomically
from instancectl.processes.commands import Commands

COMMAND_TIMEOUT_S = 30.0
DEFAULT_MODE = 0o400
_LEAST_MASKED = 4  # characters; shorter ones are no secret, and would make a text unreadable
_OTHERS = 0o007


class SecretMissing(PrepareFailed):
    """There is no value. The message names the secret and what was looked for, nothing else."""

    def __init__(self, secret: SecretDescriptor, why: str) -> None:
        super().__init__("SecretMissing", f"secret {secret.name}: {why}")


class SecretProvider(Protocol):
    """A system that keeps values. Implement this to add another one."""

    async def value(self, secret: SecretDescriptor, service: str) -> bytes:
        """The value, as it is kept, of `secret.id`, `secret.key` and `secret.version`, for an instance of this service.

        Raises:
            SecretMissing: there is none, or it cannot be read. Its message must not hold any part of a value.
        """
        ...


class DirectoryProvider:
    """Files: ROOT/ID, or ROOT/ID/KEY if a key is given; ID@VERSION instead of ID if a version is given."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def value(self, secret: SecretDescriptor, service: str) -> bytes:
        if "/" in secret.version:
            raise SecretMissing(secret, f"version {secret.version!r} points to another secret")
        name = f"{secret.id}@{secret.version}" if secret.version else secret.id
        asked = Path(name) / secret.key if secret.key else Path(name)
        if asked.is_absolute() or ".." in asked.parts:
            raise SecretMissing(secret, f"{str(asked)!r} points outside the secrets directory")
        try:
            return await start_in_own_thread((self._root / asked).read_bytes)
        except OSError as error:
            raise SecretMissing(secret, f"cannot read {asked} in the secrets directory: {error.strerror}") from None


class CommandProvider:
    """A program, called with ID, KEY and VERSION (empty if not given), that prints the value and exits with 0.

    Its variable HQ_SERVICE is the service of the instance, as HQ has it (empty: not known), so that it can refuse what
    is not this service's.
    """

    def __init__(self, command: Sequence[str], commands: Commands) -> None:
        self._command = tuple(command)
        self._commands = commands

    async def value(self, secret: SecretDescriptor, service: str) -> bytes:
        asked = [*self._command, secret.id, secret.key, secret.version]
        if any(word.startswith("-") or "\0" in word for word in (secret.id, secret.key, secret.version)):
            # An older HQ accepts these. They would be options of the command, which has a credential.
            raise SecretMissing(secret, "its id, key or version begins with a dash, or contains NUL")
        try:
            outcome = await self._commands.capture(
                asked, cwd=Path("/"), environment={**os.environ, "HQ_SERVICE": service}, timeout_s=COMMAND_TIMEOUT_S
            )
        except OSError as error:
            raise SecretMissing(secret, f"cannot run the provider's command: {error.strerror}") from None
        if not outcome.succeeded:
            raise SecretMissing(secret, f"the provider's command {outcome}")
        return outcome.output


class SecretValues:
    """Values by descriptor, from the named providers; cached in memory, so that a restart needs no provider."""

    def __init__(self, providers: Mapping[str, SecretProvider]) -> None:
        self._providers = providers
        self._known: dict[tuple[str, bytes], bytes] = {}

    def __repr__(self) -> str:
        return f"SecretValues(providers={sorted(self._providers)})"

    async def value(self, secret: SecretDescriptor, service: str, *, anew: bool = False) -> bytes:
        """The value; `anew`: ask the provider even if it is known. Raises SecretMissing."""
        key = service, secret.SerializeToString(deterministic=True)
        if anew or key not in self._known:
            self._known[key] = await self._provider(secret).value(secret, service)
        return self._known[key]

    async def environment(self, secrets: Sequence[SecretDescriptor], service: str) -> dict[str, str]:
        """The variables that hold secrets. One trailing line end of a value is dropped. Raises SecretMissing."""
        found = {}
        for secret in secrets:
            if secret.WhichOneof("target") == "environment_variable":
                found[secret.environment_variable] = _as_text(secret, await self.value(secret, service))
        return found

    async def mask(self, text: str, secrets: Sequence[SecretDescriptor], service: str) -> str:
        """A text without the values of these secrets, nor single lines of them. Raises SecretMissing."""
        words = set()
        for secret in secrets:
            value = (await self.value(secret, service)).decode(errors="replace")
            words |= {part.strip() for part in (value, *value.splitlines())}
        for word in sorted(words, key=len, reverse=True):
            if len(word) >= _LEAST_MASKED:
                text = text.replace(word, "***")
        return text

    def _provider(self, secret: SecretDescriptor) -> SecretProvider:
        provider = self._providers.get(secret.provider)
        if provider is None:
            known = ", ".join(sorted(self._providers)) or "none"
            raise SecretMissing(secret, f"unknown provider {secret.provider!r} (known: {known})")
        return provider


def _as_text(secret: SecretDescriptor, value: bytes) -> str:
    text = os.fsdecode(value.removesuffix(b"\n").removesuffix(b"\r"))
    if "\0" in text:
        raise SecretMissing(secret, "its value contains NUL, which environment variables cannot hold")
    return text


def deliver(secret: SecretDescriptor, value: bytes, directory: Path) -> None:
    """Write a value to its file below `directory`.

    Raises:
        PrepareFailed: the mode would show it to everybody, the owner is unknown, or the path leads elsewhere.
    """
    what = f"secret {secret.name}"
    mode = mode_of(secret)
    owner = _owner(secret.file.owner, what)
    path = inside(directory, secret.file.path, what)
    try:
        write_atomically(path, value, mode=mode, owner=owner)
    except OSError as error:
        message = f"{what}: cannot write {secret.file.path}: {error.strerror}"
        raise PrepareFailed("SecretNotDelivered", message) from None


def mode_of(secret: SecretDescriptor) -> int:
    """The permission bits asked for. Raises PrepareFailed: they would show the secret to everybody."""
    mode = secret.file.mode or DEFAULT_MODE
    if mode & _OTHERS:
        message = f"secret {secret.name}: mode 0{mode:o} lets everybody access it; allow owner or group only"
        raise PrepareFailed("SecretModeTooOpen", message)
    return mode


def _owner(text: str, what: str) -> tuple[int, int] | None:
    """uid and gid for `user` or `user:group`, by name or number; -1: unchanged."""
    if not text:
        return None
    user, _, group = text.partition(":")
    try:
        uid = int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid if user else -1
        gid = int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid if group else -1
    except KeyError:
        raise PrepareFailed("SecretOwnerUnknown", f"{what}: no user or group {text!r} on this host") from None
    return uid, gid
