"""The kinds of settings that the CMS keeps, a row each: `control/kind.py` has what is made of them."""

from __future__ import annotations

from typing import Any, Final

from cms.calendar_rules import check_windows
from cms.checks import check_budget
from cms.records import BUDGET, WINDOWS
from cmspb.v1 import cms_pb2 as pb
from control.kind import SettingKind

BUDGETS: Final = SettingKind(BUDGET, pb.Budget, check_budget, "there is no budget")
CALENDARS: Final = SettingKind(WINDOWS, pb.Windows, check_windows, "there are no windows", part="windows", most=20)
KINDS: Final[tuple[SettingKind[Any], ...]] = (BUDGETS, CALENDARS)
