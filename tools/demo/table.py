"""The scene as a table for a terminal of any width from 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tools.demo.events import Event
from tools.demo.lines import clock
from tools.demo.scene import Freshness, LocationScene, Ready, Scene
from tools.demo.setting import SERVICES

WIDE = 130
_FRESHNESS_STYLES = {
    Freshness.UNKNOWN: "dim",
    Freshness.FRESH: "green",
    Freshness.STALE: "yellow",
    Freshness.SILENT: "red",
}


def picture(scene: Scene, events: Sequence[Event], hints: str, chosen: str, console: Console) -> RenderableType:
    """Everything on one screen: as many of the last events as there is room for."""
    width, height = console.size
    notes = [] if width >= WIDE else _notes(scene)
    top = Group(_title(scene), _table(scene, chosen, width), *notes, Text(" what happened", "bold"))
    taken = len(console.render_lines(top, pad=False)) + hints.count("\n") + 2
    room = max(1, height - taken)
    shown = [_one_line(f" {clock(event.at_s)}  {event.text}") for event in events[-room:]]
    gap = [Text("")] * (room - len(shown) + 1)
    return Group(top, *shown, *gap, Text(hints, no_wrap=True, overflow="crop"))


def _title(scene: Scene) -> Text:
    text = Text(f" HQ demo {clock(scene.elapsed_s)}", "bold", no_wrap=True, overflow="ellipsis")
    text.append(f"   what discovery sees through the gateway {scene.gateway}", "not bold")
    if scene.fault:
        return text.append(f"   {scene.fault}", "not bold yellow")
    return text.append(f"   {scene.took_s * 1000:.0f} ms", "not bold")


def _table(scene: Scene, chosen: str, width: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_footer=True, padding=(0, 0, 0, 1), pad_edge=False)
    table.add_column("location", "all", no_wrap=True)
    table.add_column("replicas", _up(scene), no_wrap=True, justify="right")
    table.add_column("answers", no_wrap=True)
    for service in SERVICES:
        table.add_column(service, _ready(scene.total(service)), no_wrap=True, justify="right")
    table.add_column("ready", _ready(scene.all), no_wrap=True, justify="right")
    if width >= WIDE:
        table.add_column("unusual", no_wrap=True, overflow="ellipsis")
    for location in scene.locations:
        table.add_row(*_row(location, chosen, width))
    revisions = [Text(scene.revision_words(service).replace(" r", "\nr"), "dim") for service in SERVICES]
    table.add_section()
    table.add_row("revisions", "", "", *revisions, "")
    return table


def _row(location: LocationScene, chosen: str, width: int) -> list[RenderableType]:
    mark = "▸" if location.name == chosen else " "
    row: list[RenderableType] = [f"{mark}{location.name}", _replicas(location), _answers(location)]
    row += [_ready(location.ready[service], location.freshness) for service in SERVICES]
    row.append(_ready(location.all, location.freshness))
    return [*row, Text("; ".join(location.notes()), "yellow")] if width >= WIDE else row


def _up(scene: Scene) -> str:
    return f"{sum(one.up for one in scene.locations)}/{sum(one.replicas for one in scene.locations)}"


def _replicas(location: LocationScene) -> Text:
    style = "green" if location.up == location.replicas else "yellow" if location.up else "red"
    return Text(f"{location.up}/{location.replicas}", style)


def _answers(location: LocationScene) -> Text:
    age = "" if location.age_s is None else f" {location.age_s:.1f} s"
    return Text(f"{location.freshness.value}{age}", _FRESHNESS_STYLES[location.freshness])


def _ready(count: Ready, freshness: Freshness = Freshness.FRESH) -> Text:
    if not count.total:
        return Text("-", "dim")
    style = "green" if count.ready == count.total else "yellow" if count.ready else "red"
    return Text(str(count), style if freshness is Freshness.FRESH else f"dim {style}")


def _notes(scene: Scene) -> list[Text]:
    found = [f" {location.name}: {note}" for location in scene.locations for note in location.notes()]
    return [Text(note, "yellow", no_wrap=True, overflow="ellipsis") for note in found]


def _one_line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")
