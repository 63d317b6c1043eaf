"""Files of an instance given to its user. Blocking."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from instancectl.processes.confinement import ProcessUser


def give(trees: Iterable[Path], user: ProcessUser, former_uid: int | None = None) -> None:
    """Give what is ours, or a former user's, below these directories to a user; they are closed to everybody else.

    The top is given last: its owner shows that all is done, so a call after a crash completes the work, and any further
    call is cheap. Files of others stay theirs; files with several names stay as they are: some may lie elsewhere.

    Raises:
        OSError: a tree cannot be given; nothing may be started.
    """
    owners = {os.getuid(), former_uid} - {user.uid}
    for tree in trees:
        if tree.lstat().st_uid not in owners:
            continue
        for directory, _, names, held in os.fwalk(tree, topdown=False, follow_symlinks=False):
            for name in names:
                found = os.lstat(name, dir_fd=held)
                if found.st_uid in owners and (found.st_nlink == 1 or not stat.S_ISREG(found.st_mode)):
                    os.chown(name, user.uid, user.gid, dir_fd=held, follow_symlinks=False)
            if os.fstat(held).st_uid in owners and Path(directory) != tree:
                os.fchown(held, user.uid, user.gid)
        tree.chmod(0o700)
        os.chown(tree, user.uid, user.gid, follow_symlinks=False)
