"""Where things are in the directory of an instance."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from instancectl.wanted.desired import RevisionContentKey

_MAX_NAME_BYTES = 200


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below one directory, which belongs to one instance.

    Attributes:
        root: the directory.
        store: where fetched content is kept; several instances of a node may share one.
    """

    root: Path
    store: Path

    @classmethod
    def at(cls, root: Path, store: Path | None = None) -> Layout:
        """The layout below `root`, with a store of its own unless one is named."""
        root = root.absolute()
        return cls(root, store.absolute() if store else root / "store")

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def socket(self) -> Path:
        return self.root / "instancectl.sock"

    @property
    def state(self) -> Path:
        """Running children and installed revisions."""
        return self.root / "state.json"

    @property
    def last_good(self) -> Path:
        """The wanted state when HQ was last heard from."""
        return self.root / "desired.json"

    @property
    def revisions(self) -> Path:
        return self.root / "revisions"

    @property
    def volumes(self) -> Path:
        """Persistent volumes, shared by all revisions."""
        return self.root / "volumes"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def pipes(self) -> Path:
        """Named pipes that carry the output of children that an agent of an earlier version started."""
        return self.root / "pipes"

    def revision(self, key: RevisionContentKey) -> Path:
        """The directory of a revision: its processes' working directory."""
        return self.revisions / directory_name(key)

    def log(self, revision_id: str, name: str) -> Path:
        """The log of a container, or of the hooks, of a revision."""
        return self.logs_of(revision_id) / f"{shorten_name(name)}.log"

    def logs_of(self, revision_id: str) -> Path:
        return self.logs / shorten_name(revision_id)

    def pipe(self, key: RevisionContentKey, name: str) -> Path:
        return self.pipes / f"{key.digest[:12]}-{shorten_name(name)}"

    def pipes_of(self, key: RevisionContentKey) -> list[Path]:
        return list(self.pipes.glob(f"{key.digest[:12]}-*"))

    @property
    def owns_store(self) -> bool:
        """Whether nobody else uses the store."""
        return self.store.is_relative_to(self.root)

    def make(self) -> None:
        """Make the directories. Logs are private; directories of revisions may be traversed by others."""
        self.root.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(mode=0o700, exist_ok=True)
        for path in (self.revisions, self.volumes, self.store):
            path.mkdir(mode=0o755, parents=True, exist_ok=True)

    def open_to_users(self) -> None:
        """Let processes of other users pass through to what is theirs, and to nothing else. Raises OSError."""
        for path in (self.root, self.revisions, self.volumes):
            path.chmod(0o711)
        for path in (self.logs, *([self.store] if self.owns_store else [])):
            path.chmod(0o700)

    def free(self, *, volumes: bool) -> None:
        """Remove what the instance occupies, persistent volumes only if asked. A shared store stays as it is."""
        for path in (self.revisions, self.logs, self.pipes, *([self.volumes] if volumes else [])):
            shutil.rmtree(path, ignore_errors=True)
        if self.owns_store:
            shutil.rmtree(self.store, ignore_errors=True)


def directory_name(key: RevisionContentKey) -> str:
    """Different for different contents of one revision, so that one can be prepared while the other runs."""
    return f"{shorten_name(key.id)}~{key.digest[:12]}"


def shorten_name(name: str) -> str:
    """A name that fits a file system with room for a suffix."""
    return name.replace("/", "_")[:_MAX_NAME_BYTES]
