"""How much one request may list, wherever it arrives: a replica refuses more, a front does without asking one."""

from typing import Final

MOST_ITEMS: Final = 1_000  # of one ApplyInstances, BeginReportings or ReportStatuses
MOST_FILTER_VALUES: Final = 10_000  # of one field of a filter
