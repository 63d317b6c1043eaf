"""walle notices"""

from __future__ import annotations

from typing import Final

import click

from hqcli.formats import LISTS, output_option
from hqcli.readable import stamp
from hqcli.sorting import columns_of, sort_key, sort_option
from hqcli.watching import watched
from wallectl.asking import call, call_pages
from wallectl.output import print_if_data, table, word
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.project_pb2 import NoticeRecord, Severity

_HEAD: Final = ("NOTICE", "SEVERITY", "LAST", "TIMES", "PROJECT", "SENT", "TEXT")
_SEVERITIES: Final = [name.removeprefix("SEVERITY_").lower() for name, value in Severity.items() if value]


@click.group()
def notices() -> None:
    """Show what people were notified of, and acknowledge it."""


@notices.command("list")
@click.option("--project", default="", help="Only notices about this project.")
@click.option("--host", default="", help="Only notices about this host.")
@click.option("--severity", type=click.Choice(_SEVERITIES), default="info", help="This one and above.")
@click.option("--all", "everything", is_flag=True, help="Also those that are acknowledged.")
@watched
@sort_option
@output_option(*LISTS)
def list_(project: str, host: str, severity: str, everything: bool, sort_by: str, output: str) -> None:
    """List notices, the latest first: one line for each cause."""
    key = sort_key(sort_by, columns_of(_HEAD, _row)) if sort_by else None
    wanted = pb.ListNoticesRequest(project=project, host=host, severity=f"SEVERITY_{severity.upper()}", all=everything)
    shown = call_pages("ListNotices", wanted)
    if key:
        shown.notices.sort(key=key)
    if not print_if_data(shown, output):
        table([_row(one) for one in shown.notices], _HEAD, "No notice matches.")


@notices.command()
@click.argument("notice")
@click.option("-m", "--reason", required=True, help="Who does what about it.")
def acknowledge(notice: str, reason: str) -> None:
    """Say that somebody knows: it is not sent again while it keeps coming up. NOTICE is its id."""
    call("AcknowledgeNotice", pb.AcknowledgeNoticeRequest(notice=notice, reason=reason))
    click.echo(f"notice {notice} acknowledged")


def _row(notice: NoticeRecord) -> tuple[str, ...]:
    return (
        notice.id,
        word(Severity, notice.severity),
        stamp(notice.last),
        str(notice.count),
        notice.project or "all",
        _delivery(notice),
        notice.text,
    )


def _delivery(notice: NoticeRecord) -> str:
    if notice.HasField("acknowledged"):
        return f"known to {notice.acknowledged_by}"
    if notice.pending:
        return f"waits: {notice.problem}" if notice.problem else "waits"
    return notice.problem or ("yes" if notice.rounds else "nobody hears it")
