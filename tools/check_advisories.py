"""Is a version locked that has a known hole? Compares requirements/*.txt with advisories.toml; needs no network."""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def main() -> int:
    advisories = tomllib.loads((ROOT / "tools" / "advisories.toml").read_text())["advisory"]
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    found = [line for path in locks for line in holes(advisories, locked(path.read_text()), path.name)]
    for line in found:
        print(line)
    if not found:
        print(f"advisories: none of {len(advisories)} concerns a version in {', '.join(path.name for path in locks)}")
    return int(bool(found))


def locked(text: str) -> dict[str, Version]:
    """Versions by normalized name."""
    return {normal(name): Version(version) for name, version in LOCKED.findall(text)}


def holes(advisories: Sequence[Mapping[str, Any]], versions: Mapping[str, Version], where: str) -> Iterator[str]:
    """One line for each version with a hole."""
    for advisory in advisories:
        version = versions.get(normal(advisory["package"]))
        if version is not None and not is_good(version, [Version(fixed) for fixed in advisory["fixed"]]):
            wanted = ", ".join(advisory["fixed"])
            words = f"{advisory['id']} ({advisory['about']}): take {wanted} or newer"
            yield f"{where}: {advisory['package']} {version} has {words}"


def is_good(version: Version, fixed: Sequence[Version]) -> bool:
    """Whether a version is at or after the fix of its own release line (first two numbers), or after all fixes."""
    same_line = [f for f in fixed if f.release[:2] == version.release[:2]]
    return version >= (min(same_line) if same_line else max(fixed))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
