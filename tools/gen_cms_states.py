"""Write docs/cms-states.md from the CMS's tables, or (--check) say whether it is up to date."""

import sys
from collections.abc import Iterator
from pathlib import Path

from cms.ledger.actions import ACTIONS
from cms.ledger.states import HOLDING, STATUS, TABLE, State, TaskEvent

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cms-states.md"
HEAD = """# States and actions of a task

A *task* asks the CMS (cluster management system: the server that approves disruptions) whether something may be
taken down. [cms.md](cms.md) is the guide. Made from the tables in `cms/ledger/` by `make proto`. An empty cell cannot
happen.
"""


def main() -> None:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"docs/{PAGE.name} differs from the tables of the CMS\nRun: make proto")
    else:
        print(f"docs/{PAGE.name} is up to date")


def page() -> str:
    return "\n".join([HEAD, *_states(), "\n## Actions\n", *_actions()]) + "\n"


def _states() -> Iterator[str]:
    yield "| state | on the wire | holds | " + " | ".join(TaskEvent) + " |"
    yield "| --- " * (3 + len(TaskEvent)) + "|"
    for state in State:
        if state is not State.ENDED:
            cells = [str(TABLE.get((state, event), "")) for event in TaskEvent]
            holds = "yes" if state in HOLDING else ""
            yield f"| **{state}** | {STATUS[state]} | {holds} | {' | '.join(cells)} |"


def _actions() -> Iterator[str]:
    yield "| action | since | takes instances down | overdue after | away at most |"
    yield "| --- | --- | --- | --- | --- |"
    for action in ACTIONS.values():
        since = "cms.v1 only" if action.since is None else f"v1.{action.since}"
        disrupts = "yes" if action.disrupts else "no"
        away = f"{action.away_s / 60:.0f} min" if action.away_s < float("inf") else ""
        yield f"| {action.name} | {since} | {disrupts} | {action.bound_s / 3600:.0f} h | {away} |"


if __name__ == "__main__":
    main()
