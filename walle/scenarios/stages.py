"""The stages of switch maintenance as a table: (stage, event) -> stage, and how it will end."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from wallepb.v1.project_pb2 import (
    SCENARIO_STAGE_ASKING,
    SCENARIO_STAGE_CANCELLED,
    SCENARIO_STAGE_CONFIRMING,
    SCENARIO_STAGE_FINISHED,
    SCENARIO_STAGE_REFUSED,
    SCENARIO_STAGE_RETURNING,
    SCENARIO_STAGE_UNSPECIFIED,
    SCENARIO_STAGE_WORKING,
    Scenario,
    ScenarioStage,
)

ASK_MS: Final = 30 * 60_000  # all must have agreed within it
WORK_MS: Final = 60 * 60_000  # the hour within which hosts are out of reach


class Event(StrEnum):
    """What happens to planned work."""

    ALL_OK = "every CMS agreed"
    REJECTED = "a CMS rejected it"
    WITHDRAWN = "a CMS took its ok back"
    CONFIRMED = "confirmed, HQ does not count silence: the work may begin"
    TOO_LATE = "not everybody agreed within 30 min: the work is forbidden"
    DONE = "the work is done"
    HOUR_OVER = "the hour is over"
    CANCEL = "cancelled"
    RETURNED = "the hosts are back in automation"


Row = tuple[ScenarioStage, ScenarioStage]
_NOT_YET: Final = SCENARIO_STAGE_UNSPECIFIED
_REFUSED: Final[Row] = (SCENARIO_STAGE_RETURNING, SCENARIO_STAGE_REFUSED)
_CANCELLED: Final[Row] = (SCENARIO_STAGE_RETURNING, SCENARIO_STAGE_CANCELLED)
_FINISHED: Final[Row] = (SCENARIO_STAGE_RETURNING, SCENARIO_STAGE_FINISHED)

TABLE: Final[Mapping[tuple[ScenarioStage, Event], Row]] = {
    (SCENARIO_STAGE_ASKING, Event.ALL_OK): (SCENARIO_STAGE_CONFIRMING, _NOT_YET),
    (SCENARIO_STAGE_ASKING, Event.REJECTED): _REFUSED,
    (SCENARIO_STAGE_ASKING, Event.TOO_LATE): _REFUSED,
    (SCENARIO_STAGE_ASKING, Event.CANCEL): _CANCELLED,
    (SCENARIO_STAGE_CONFIRMING, Event.CONFIRMED): (SCENARIO_STAGE_WORKING, _NOT_YET),
    (SCENARIO_STAGE_CONFIRMING, Event.WITHDRAWN): (SCENARIO_STAGE_ASKING, _NOT_YET),
    (SCENARIO_STAGE_CONFIRMING, Event.REJECTED): _REFUSED,
    (SCENARIO_STAGE_CONFIRMING, Event.TOO_LATE): _REFUSED,
    (SCENARIO_STAGE_CONFIRMING, Event.CANCEL): _CANCELLED,
    (SCENARIO_STAGE_WORKING, Event.DONE): _FINISHED,
    (SCENARIO_STAGE_WORKING, Event.HOUR_OVER): _FINISHED,
    (SCENARIO_STAGE_WORKING, Event.CANCEL): _CANCELLED,
    # RETURNING ends in the stage that `ending` names.
    (SCENARIO_STAGE_RETURNING, Event.RETURNED): (_NOT_YET, _NOT_YET),
}
OVER: Final = frozenset({SCENARIO_STAGE_FINISHED, SCENARIO_STAGE_REFUSED, SCENARIO_STAGE_CANCELLED})
_ASKING: Final = (SCENARIO_STAGE_ASKING, SCENARIO_STAGE_CONFIRMING)


def is_possible(scenario: Scenario, event: Event) -> bool:
    return (scenario.stage, event) in TABLE


def advance(scenario: Scenario, event: Event, now_ms: int, message: str = "") -> Scenario:
    """A copy in the next stage. Raises KeyError: the table does not have it.

    Asking and confirming share their 30 minutes: the time of a withdrawn ok is not given again.
    """
    stage, ending = TABLE[scenario.stage, event]
    moved = Scenario()
    moved.CopyFrom(scenario)
    moved.stage = stage or scenario.ending
    moved.ending = ending or scenario.ending
    if not (scenario.stage in _ASKING and moved.stage in _ASKING):
        moved.since_ms = now_ms
    if event is not Event.RETURNED:  # how it ended stays to be read
        moved.message = message or event.value
    return moved


def event_by_time(scenario: Scenario, now_ms: int) -> Event | None:
    if scenario.stage in _ASKING and now_ms - scenario.since_ms >= ASK_MS:
        return Event.TOO_LATE
    if scenario.stage == SCENARIO_STAGE_WORKING and now_ms - scenario.since_ms >= WORK_MS:
        return Event.HOUR_OVER
    return None
