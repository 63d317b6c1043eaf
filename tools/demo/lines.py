"""The scene as plain lines, for a demo without a terminal: what changed, when it changed."""

from __future__ import annotations

from collections.abc import Callable

from tools.demo.events import Events
from tools.demo.scene import LocationScene, Scene
from tools.demo.setting import SERVICES

_PATIENCE_S = 5.0


class Lines:
    """Prints each event once, and a location whenever it looks different and its counts have come to rest."""

    def __init__(self, events: Events, say: Callable[[str], None]) -> None:
        self._events, self._say = events, say
        self._last_event = 0
        self._seen: dict[str, str] = {}
        self._shown: dict[str, tuple[str, float]] = {}

    def show(self, scene: Scene) -> None:
        """Print what is new."""
        for event in self._events.after(self._last_event):
            self._say(f"{clock(event.at_s)}  {event.text}")
            self._last_event = event.number
        if scene.all.total:
            for location in scene.locations:
                self._show(location, scene.elapsed_s)

    def _show(self, location: LocationScene, now_s: float) -> None:
        line = _line(location)
        shown, shown_at_s = self._shown.get(location.name, ("", -_PATIENCE_S))
        at_rest = self._seen.get(location.name) == line
        self._seen[location.name] = line
        if line != shown and (at_rest or now_s - shown_at_s >= _PATIENCE_S):
            self._say(f"{clock(now_s)}  {line}")
            self._shown[location.name] = (line, now_s)


def lines_of(scene: Scene) -> list[str]:
    """The whole scene."""
    revisions = [f"{service} {words}" for service in SERVICES if (words := scene.revision_words(service))]
    gateway = f"gateway {scene.gateway}, {scene.fault or f'answered in {scene.took_s * 1000:.0f} ms'}"
    return [*(_line(location) for location in scene.locations), f"revisions: {', '.join(revisions)}", gateway]


def clock(seconds: float) -> str:
    """As 01:23."""
    return f"{int(seconds) // 60:02}:{int(seconds) % 60:02}"


def _line(location: LocationScene) -> str:
    ready = " ".join(f"{service} {location.ready[service]}" for service in SERVICES)
    line = f"{location.name:<5} replicas {location.up}/{location.replicas} {location.freshness.value:<6} {ready}"
    return "; ".join((line, *location.notes()))
