"""The table of scenarios (scenarios.yaml), read and checked. A step is a verb with its object and more options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

TABLE: Final = Path(__file__).with_name("scenarios.yaml")
FEATURES: Final = ("core", "doubt", "federation", "file", "identity", "renewal", "tls")
MESSAGES: Final = frozenset({"snapshot", "synced", "events", "bookmark", "resync", "unknown_kind"})
VERBS: Final = frozenset(
    {
        *MESSAGES,
        *("expect", "shown", "stream", "cut", "end", "refuse", "renew_token", "next"),
        *("stop", "start", "freeze", "mute"),
        *("open", "close", "kill", "damage_files", "remember_files", "same_files", "renew_certificates", "wait_s"),
    }
)


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One line of a scenario: the verb, its object, and the other words of the line."""

    verb: str
    what: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        more = "".join(f", {name}: {value}" for name, value in self.options.items())
        return f"{self.verb}: {self.what}{more}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What HQ says and does, and what the client has to show.

    Attributes:
        feature: clients that do without it skip the scenario.
        flaw: what a client lacks that fails here (flaws.py).
        replicas: how many there are.
        settings: times in milliseconds, in place of the defaults.
        opens: False: the scenario opens the client itself.
    """

    name: str
    promise: str
    flaw: str
    steps: Sequence[ScenarioStep]
    feature: str = "core"
    replicas: int = 1
    settings: Mapping[str, int] = field(default_factory=dict)
    opens: bool = True

    def __str__(self) -> str:
        return self.name


def read_scenarios(table: Path = TABLE) -> list[Scenario]:
    """All scenarios. Raises ValueError: the table has a mistake."""
    scenarios = [_scenario(entry) for entry in yaml.safe_load(table.read_text())]
    names = [scenario.name for scenario in scenarios]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"scenarios with one name: {sorted(twice)}")
    return scenarios


def _scenario(entry: dict[str, Any]) -> Scenario:
    name = entry["name"]
    steps = [_step(name, line) for line in entry.pop("steps")]
    scenario = Scenario(steps=steps, **entry)
    if scenario.feature not in FEATURES:
        raise ValueError(f"{name}: feature {scenario.feature!r} is not one of {', '.join(FEATURES)}")
    return scenario


def _step(name: str, line: dict[str, Any] | str) -> ScenarioStep:
    words = {line: None} if isinstance(line, str) else dict(line)
    verb = next(iter(words))
    if verb not in VERBS:
        raise ValueError(f"{name}: {verb!r} is not a verb: {', '.join(sorted(VERBS))}")
    what: Any = words.pop(verb)
    if verb == "next":
        what = [_step(name, inner) for inner in what or ()]
    return ScenarioStep(verb, what, words)
