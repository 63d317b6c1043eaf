"""What is printed at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def report(
    title: str,
    struck: Mapping[str, int],
    failed: Mapping[str, int],
    counts: Counter[tuple[str, str]],
    errors: Counter[tuple[str, str]],
    violations: Sequence[str],
    notes: Sequence[str],
) -> str:
    """The table: faults by kind, operations by kind and outcome, errors, verdict."""
    lines = ["", title, "", f"{'faults':34} {'struck':>8} {'could not':>10}"]
    kinds = sorted({*struck, *failed})
    lines += [f"  {kind:32} {struck.get(kind, 0):8} {failed.get(kind, 0):10}" for kind in kinds]
    lines.append(f"  {'all':32} {sum(struck.values()):8} {sum(failed.values()):10}")
    lines += ["", f"{'operations':20} {'ok':>9} {'failed':>9} {'unknown':>9}"]
    for op in sorted({op for op, _ in counts}):
        row = [counts[op, outcome] for outcome in ("ok", "failed", "unknown")]
        lines.append(f"  {op:18} {row[0]:9} {row[1]:9} {row[2]:9}")
    lines.append(f"  {'all':18} {sum(counts.values()):9}")
    reasons: Counter[str] = Counter()
    for (_, reason), number in errors.items():
        reasons[reason] += number
    lines += ["", "errors: " + ", ".join(f"{reason} {number}" for reason, number in reasons.most_common())]
    lines += [*notes, ""]
    lines += [f"VIOLATION {number}: {text}" for number, text in enumerate(violations, 1)]
    lines.append("verdict: " + (f"{len(violations)} violations" if violations else "0 violations"))
    return "\n".join(lines)
