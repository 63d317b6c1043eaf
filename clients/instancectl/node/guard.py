"""Who the instances of a node run as: a user for each service; another one, or root, if the node allows it."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hqpb.v1.instance_pb2 import Container
from instancectl.content import PrepareFailed
from instancectl.content.guard import IsolationUnavailable, is_isolation_required
from instancectl.node.users import NoUserLeft, ServiceUsers
from instancectl.processes.confinement import (
    BubblewrapRuntime,
    Confinement,
    PlainRuntime,
    ProcessRuntime,
    ProcessUser,
    default_limits,
)
from instancectl.settings import NodeSettings, UidRange
from instancectl.wanted.desired import Desired

_ROOT = ProcessUser(0, 0)
_PLAIN = PlainRuntime()
_PROBE_S = 10.0

log = logging.getLogger(__name__)


class NodeGuard:
    """Decides by service who processes run as.

    Args:
        users: None: we are not root, so everything runs as our own user.
        chosen: by service, the user of the node that it runs as, perhaps root; other services get one from `users`.
        root: the directory above those of all instances.
    """

    def __init__(
        self, users: ServiceUsers | None, chosen: Mapping[str, ProcessUser], runtime: ProcessRuntime, root: Path
    ) -> None:
        self._users = users
        self._chosen = chosen
        self._runtime = runtime
        self._root = root

    def confinement(self, desired: Desired, container: Container | None, cwd: Path) -> Confinement:
        user = self._user(desired, container)
        disks = (Path(disk.path) for disk in desired.allocation.disk if disk.path)
        visible = (self._root / desired.instance_id, *disks)
        # Root without capabilities can make no namespace.
        runtime = _PLAIN if user == _ROOT else self._runtime
        what = f"uid {user.uid}" if user else "the agent's own user: it is not root"
        if is_isolation_required(container) and (user in (None, _ROOT) or runtime.name == PlainRuntime.name):
            raise IsolationUnavailable(
                container, f"it would run as {what}, {runtime.name}: see instancectl node --help"
            )
        return Confinement(
            user=user,
            former_uid=self._users.uid_of(desired.service) if self._users and user != _ROOT else None,
            is_hardened=True,
            limits=default_limits() if user != _ROOT else {},
            # Scripts and checks are not wrapped: they would get a /tmp that is not the container's.
            wrapper=runtime.wrapper(cwd, visible) if container is not None else (),
            description=f"{what}, {runtime.name}",
        )

    def _user(self, desired: Desired, container: Container | None) -> ProcessUser | None:
        """Raises PrepareFailed."""
        if self._users is None:
            return None
        if (chosen := self._chosen.get(desired.service)) is not None:
            return chosen
        try:
            return self._users.user_of(desired.service or f"instance {desired.instance_id}", self._owner(desired))
        except (NoUserLeft, OSError) as error:
            raise PrepareFailed("NoUser", f"there is no user to run as: {error}") from None

    def _owner(self, desired: Desired) -> int | None:
        """Who owns the files of its volumes or revisions."""
        place = self._root / desired.instance_id
        trees = [*place.glob("volumes/*"), *place.glob("revisions/*")]
        return next((owner for tree in trees if (owner := tree.lstat().st_uid) != 0), None)


def guard_of(settings: NodeSettings) -> NodeGuard:
    """The guard of a node. Raises OSError, ValueError: its users cannot be read."""
    root = settings.run.directory
    users = None
    if os.getuid() == _ROOT.uid:
        trees = [*root.glob("*/volumes/*"), *root.glob("*/revisions/*")]
        users = ServiceUsers(settings.own_directory / "users.json", settings.uids, (t.lstat().st_uid for t in trees))
    chosen = dict.fromkeys(settings.rooted, _ROOT) | dict(settings.users)
    return NodeGuard(users, chosen, _runtime(settings.runtime, settings.uids, root), root)


def _runtime(name: str, uids: UidRange, root: Path) -> ProcessRuntime:
    """Raises OSError: bubblewrap was demanded and does not work."""
    if name == "plain":
        return PlainRuntime()
    program = shutil.which("bwrap") or ""
    runtime = BubblewrapRuntime(program, root)
    trouble = _probe(runtime, uids.last) if program else "there is no bwrap in PATH"
    if not trouble:
        return runtime
    if name == "bubblewrap":
        raise OSError(f"--runtime bubblewrap: {trouble}")
    log.warning("instances are kept apart by users only: %s", trouble)
    return PlainRuntime()


def _probe(runtime: BubblewrapRuntime, uid: int) -> str:
    """Why bubblewrap does not work for a user of this number; empty: it does."""
    command = [*runtime.wrapper(Path("/"), ()), "true"]
    user = {"user": uid, "group": uid, "extra_groups": []} if os.getuid() == _ROOT.uid else {}
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False, **user)  # type: ignore[call-overload]
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    words = done.stderr.decode(errors="replace").strip()
    return "" if done.returncode == 0 else words or f"it exits with {done.returncode}"
