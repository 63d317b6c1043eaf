"""`python -m tests.checker HISTORY...`: check histories that were recorded; exit 1 if one breaks a promise."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from tests.checker.check import violations
from tests.checker.history_file import read_history
from tests.checker.story import Limits

_SHOWN_AT_MOST = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.checker", description=__doc__)
    parser.add_argument("history", nargs="+", type=Path, help="a file of JSON lines, perhaps .gz")
    parser.add_argument("--stale-after", type=float, default=10.0, metavar="S", help="answers that are older say so")
    parser.add_argument("--liveness-timeout", type=float, metavar="S", help="nobody is expired within (default: any)")
    parser.add_argument("--transit", type=float, default=6.0, metavar="S", help="messages may be under way for so long")
    parser.add_argument("--ghost", type=float, metavar="S", help="nothing is shown that was deleted longer ago")
    parser.add_argument("--gone", type=float, metavar="S", help="nothing is ready that was silent for longer")
    parser.add_argument("--forgiven", type=float, default=0.0, metavar="S", help="and that each fault forgives beside")
    a = parser.parse_args()
    limits = Limits(a.stale_after, a.liveness_timeout, a.transit, a.ghost, a.gone, a.forgiven)
    return max(_check(path, limits) for path in a.history)


def _check(path: Path, limits: Limits) -> int:
    began = time.monotonic()
    events = list(read_history(path))
    found = violations(events, limits)
    kinds = Counter(type(event).__name__ for event in events)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{path}: {counts}: {len(found)} violations in {time.monotonic() - began:.1f} s")
    for violation in found[:_SHOWN_AT_MOST]:
        print(violation)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
