"""Making a revision installed, and removing it: secrets first, then files and packages, volumes, scripts last."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from hqpb.v1.instance_pb2 import Container, InstanceRevision, LifecycleHook, SecretDescriptor
from instancectl.background import Cancel, run_in_thread
from instancectl.content import PrepareFailed, environment, volumes
from instancectl.content.directories import inside, remove_tree
from instancectl.content.fetch import ContentStore, is_public
from instancectl.content.guard import Guard
from instancectl.content.ownership import give
from instancectl.content.secrets import SecretValues, deliver
from instancectl.content.spec_faults import check_supported
from instancectl.content.unpacking import unpack
from instancectl.layout import Layout
from instancectl.processes.commands import Commands
from instancectl.processes.confinement import Confinement
from instancectl.processes.limits import Grip, Limiter, limit_of
from instancectl.processes.output import Output, OutputSettings
from instancectl.reports import conditions
from instancectl.reports.conditions import ConditionVerdict
from instancectl.wanted.desired import Desired, RevisionContentKey

HOOK_TIMEOUT_S = 60.0
_DEFAULT_FILE_MODE = 0o644


class Preparer:
    """Prepares revisions and removes them."""

    def __init__(
        self,
        layout: Layout,
        store: ContentStore,
        secrets: SecretValues,
        commands: Commands,
        guard: Guard,
        limiter: Limiter,
        output: OutputSettings,
        slots: asyncio.Semaphore,
    ) -> None:
        """slots: how many revisions of the whole node are fetched and placed at a time."""
        self._layout = layout
        self._slots = slots
        self._guard, self._limiter = guard, limiter
        self._store = store
        self._secrets = secrets
        self._commands = commands
        self._output = output

    async def prepare(
        self,
        key: RevisionContentKey,
        revision: InstanceRevision,
        desired: Desired,
        reached: Callable[[ConditionVerdict], None],
    ) -> list[str]:
        """Prepare from the beginning; return the digests of the contents used.

        Args:
            reached: called at the beginning of each stage with what is being done.

        Raises:
            PrepareFailed: and what was prepared so far cannot be used.
        """
        check_supported(revision)
        for container in revision.container:  # one that may not start is not prepared either
            self._guard.confinement(desired, container, self._layout.revision(key))
        try:
            # Secrets first: a missing one is noticed before gigabytes are downloaded.
            values = [
                (secret, await self._secrets.value(secret, desired.service, anew=True)) for secret in revision.secret
            ]
            reached(conditions.DOWNLOADING)
            async with self._slots:
                contents = await run_in_thread(lambda cancel: self._obtain(revision, cancel))
                reached(conditions.DOWNLOADED)
                await run_in_thread(lambda cancel: self._place(key, revision, desired, contents, cancel))
            reached(conditions.INSTALLING)
            self._deliver(values, self._layout.revision(key))
            confinement = self._guard.confinement(desired, None, self._layout.revision(key))
            if (user := confinement.user) is not None:
                places = volumes.places(revision, key, desired, self._layout)
                await run_in_thread(lambda _: give([self._layout.revision(key), *places], user, confinement.former_uid))
            if revision.prepare:
                reached(conditions.RUNNING_SCRIPTS)
                await self._run_scripts(key, revision, desired, confinement)
        except OSError as error:
            raise PrepareFailed("PrepareFailed", f"{error.strerror or error}: {error.filename or ''}") from None
        return [content.name for content in contents]

    def has(self, key: RevisionContentKey) -> bool:
        """Whether its directory is there."""
        return self._layout.revision(key).is_dir()

    async def remove(self, key: RevisionContentKey, desired: Desired | None) -> None:
        """Remove what a revision occupies; persistent volumes stay. Raises OSError."""
        on_disks = volumes.places_on_disks(key, desired) if desired else []
        for path in (self._layout.revision(key), *on_disks):
            await run_in_thread(lambda _, path=path: remove_tree(path))  # type: ignore[misc]

    def _obtain(self, revision: InstanceRevision, cancel: Cancel) -> list[Path]:
        """The contents of all packages, then of all files."""
        obtain = self._store.obtain
        packages = [obtain(each.url, each.checksum, f"package {each.name}", cancel) for each in revision.package]
        files = [obtain(each.url, each.checksum, f"file {each.name}", cancel) for each in revision.file]
        return packages + files

    def _place(
        self,
        key: RevisionContentKey,
        revision: InstanceRevision,
        desired: Desired,
        contents: list[Path],
        cancel: Cancel,
    ) -> None:
        directory = self._layout.revision(key)
        remove_tree(directory)
        directory.mkdir(mode=0o755, parents=True)
        packages, files = contents[: len(revision.package)], contents[len(revision.package) :]
        for package, content in zip(revision.package, packages, strict=True):
            what = f"package {package.name}"
            unpack(content, inside(directory, package.name, what), what, cancel)
        for file, content in zip(revision.file, files, strict=True):
            _copy(content, inside(directory, file.name, f"file {file.name}"), file.mode or _DEFAULT_FILE_MODE)
        for volume in revision.volume:
            volumes.create(volume, key, desired, self._layout)

    def _deliver(self, values: Sequence[tuple[SecretDescriptor, bytes]], directory: Path) -> None:
        for secret, value in values:
            if secret.WhichOneof("target") == "file":
                deliver(secret, value, directory)

    async def _run_scripts(
        self, key: RevisionContentKey, revision: InstanceRevision, desired: Desired, confinement: Confinement
    ) -> None:
        directory = self._layout.revision(key)
        variables = environment.base(desired, revision.id, directory, is_confined=confinement.user is not None)
        output = Output(self._layout.log(revision.id, "prepare"), self._output, self._layout.pipe(key, "prepare"))
        with output.open_writer(confinement.user) as writer:
            for number, hook in enumerate(revision.prepare, 1):
                grip = self._limiter.grip(f"{key.digest}//prepare", limit_of(Container(), desired.allocation))
                await self._run_script(hook, number, directory, variables, writer, confinement, grip)

    async def _run_script(
        self,
        hook: LifecycleHook,
        number: int,
        directory: Path,
        variables: dict[str, str],
        output: int,
        confinement: Confinement,
        grip: Grip,
    ) -> None:
        timeout_s = hook.timeout.ToTimedelta().total_seconds() or HOOK_TIMEOUT_S
        outcome = await self._commands.run(
            hook.command,
            cwd=directory,
            environment=variables,
            timeout_s=timeout_s,
            output=output,
            confinement=confinement,
            grip=grip,
        )
        if not outcome.succeeded:
            # Its output may hold a secret, so it stays in the log, which nobody else can read.
            name = hook.name or f"{number} ({hook.command[0] if hook.command else 'no command'})"
            reason = "PrepareScriptTimedOut" if outcome.timed_out else "PrepareScriptFailed"
            raise PrepareFailed(reason, f"prepare script {name} {outcome}; see its log")


def _copy(content: Path, target: Path, mode: int) -> None:
    """A copy, not a link: what a program writes to its file must not reach the store. Raises OSError.

    A copy of what is not public is for the owner alone, whatever `mode` says.
    """
    target.unlink(missing_ok=True)
    file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with content.open("rb") as source, os.fdopen(file, "wb") as copy:
        os.fchmod(file, mode & (0o777 if is_public(content) else 0o700))
        while chunk := source.read(1 << 20):
            copy.write(chunk)
        copy.flush()
        os.fsync(file)
