"""Write docs/nanny-states.md from Nanny's tables, or (--check) say whether it is up to date."""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from nanny.automaton import service_state
from nanny.automaton.states import ACTIONS, MEANINGS, NEVER_STORED, Current, SnapshotEvent
from nanny.automaton.table import TABLE, State
from nanny.instances import STATES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "nanny-states.md"
HEAD = """# Nanny's states

You find here what each state of a snapshot, a service and an instance means, and what leads from one to another.
Made from the tables in `nanny/automaton/` and `nanny/instances.py` by `make proto`. The guide is
[nanny-service.md](nanny-service.md).
"""
_ORDERS = (SnapshotEvent.TO_CREATED, SnapshotEvent.TO_PREPARED, SnapshotEvent.TO_ACTIVE, SnapshotEvent.TO_DESTROYED)
_OUTCOMES = (SnapshotEvent.DONE, SnapshotEvent.FAILED, SnapshotEvent.CANCELLED)
_OTHERS = (
    SnapshotEvent.REPLACED,
    SnapshotEvent.RELEASED,
    SnapshotEvent.STOPPED,
    SnapshotEvent.AGAIN,
    SnapshotEvent.PROMOTED,
    SnapshotEvent.ABORTED,
)


def main() -> None:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"docs/{PAGE.name} differs from nanny's tables\nRun: make proto")
    else:
        print(f"docs/{PAGE.name} is up to date")


def page() -> str:
    parts = [HEAD, *_snapshots(), *_services(), *_instances()]
    return "\n".join(parts) + "\n"


def _snapshots() -> Iterator[str]:
    yield "## Snapshots\n"
    yield "| current state | action | meaning |\n| --- | --- | --- |"
    for state in Current:
        shown = f"{state} (never shown)" if state in NEVER_STORED else str(state)
        yield f"| **{shown}** | {ACTIONS.get(state, '')} | {MEANINGS[state]} |"
    yield "\n### Requests: where a resting snapshot goes next\n"
    yield "A request in a working state lets the work go on if it leads to the new target. Otherwise the work is"
    yield "`cancelled`, and the request is handled in the state where that leaves the snapshot.\n"
    yield from _matrix(_ORDERS)
    yield "\n### Outcomes of actions\n"
    yield from _matrix(_OUTCOMES)
    yield "\n### What other snapshots and `stop` do to it\n"
    yield "`stop` concerns a PREPARED snapshot only where instances have targets of their own; `requested again` means"
    yield "ACTIVE with such instances, or CREATED with `--fill` for the first time.\n"
    yield from _matrix(_OTHERS)
    yield "\n### Diagram\n\nInternal states are left out.\n"
    yield "```mermaid\nstateDiagram-v2"
    yield from _arrows()
    yield "```\n"


def _matrix(events: tuple[SnapshotEvent, ...]) -> Iterator[str]:
    yield "| from | " + " | ".join(events) + " |\n|" + " --- |" * (len(events) + 1)
    for state in (None, *Current):
        if any((state, event) in TABLE for event in events):
            yield f"| **{_name(state)}** | " + " | ".join(_cell(state, event) for event in events) + " |"


def _cell(state: State, event: SnapshotEvent) -> str:
    if (state, event) not in TABLE:
        return ""
    after = TABLE[state, event]
    return "stays" if after is state else _name(after)


def _name(state: State) -> str:
    return "(none)" if state is None else str(state)


def _arrows() -> Iterator[str]:
    labels: dict[tuple[str, str], list[str]] = {}
    for (state, event), after in TABLE.items():
        if after is not state and not {state, after} & NEVER_STORED:
            ends = ("[*]" if state is None else str(state), "[*]" if after is None else str(after))
            labels.setdefault(ends, []).append(event.removeprefix("towards "))
    labels["DESTROYING", "[*]"] = ["done"]
    labels["ACTIVATING", "DEACTIVATE_PENDING"] = [SnapshotEvent.REPLACED]
    for (before, after_), words in labels.items():
        yield f"    {before} --> {after_}: {', '.join(words)}"


def _services() -> Iterator[str]:
    yield "## Services\n"
    yield "The first state in this list that any snapshot calls for; whether the service is paused stands beside it.\n"
    yield "| state | meaning | snapshots that call for it |\n| --- | --- | --- |"
    for state in service_state.ServiceState:
        callers = [str(current) for current, shows in service_state.SHOWS.items() if shows is state]
        if state is service_state.ServiceState.UPDATING:
            callers.append("any work towards ACTIVE")
        if state is service_state.ServiceState.ONLINE:
            callers.append("a resting one whose instances have targets of their own")
        yield f"| **{state}** | {service_state.MEANINGS[state]} | {', '.join(callers)} |"
    yield ""


def _instances() -> Iterator[str]:
    yield "## Instances\n"
    yield "Reasons are what agents report in conditions and containers. A state without any follows from conditions."
    yield "Old names are those of the system that Nanny replaces. `instancectl` sends every state that can occur under"
    yield "it; those of what it has not got (Porto's containers, Skynet's file transfer, shards, dynamic resources)"
    yield "come from other agents only."
    for group, states in groupby(STATES, key=lambda state: state.group):
        yield f"\n### {group[0].upper()}{group[1:]}\n"
        yield "| old name | name | meaning | reasons | from instancectl |\n| --- | --- | --- | --- | --- |"
        for state in states:
            sends = f"no: it has no {state.needs}" if state.needs else "yes"
            yield f"| `{state.old}` | **{state.new}** | {state.meaning} | {', '.join(state.reasons)} | {sends} |"


if __name__ == "__main__":
    main()
