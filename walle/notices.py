"""Notices: recipients, channels, and failed deliveries."""

from __future__ import annotations

import asyncio
import logging
import re
import smtplib
import ssl
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from ssl import SSLContext
from typing import Final, Protocol

from control.outgoing import OutgoingCallFailed
from walle.outgoing.calls import OutgoingCalls
from walle.outgoing.destinations import BadAddress, Destinations, not_listed
from walle.work.book import Notice
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL, SEVERITY_ERROR, Project, Recipient, Severity

log = logging.getLogger(__name__)

_KEPT: Final = 1000
_MOST_WAITING: Final = 1_000  # of one project
_ATTEMPTS: Final = 3
_RETRY_S: Final = 5.0
_MAIL: Final = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,63}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
)
_LEVELS: Final = {SEVERITY_ERROR: logging.ERROR, SEVERITY_CRITICAL: logging.ERROR}


class Way(Protocol):
    """How a notice gets to somebody."""

    def takes(self, address: str) -> bool:
        """Whether this channel handles such an address."""

    async def deliver(self, address: str, notice: Notice) -> None:
        """Raises OSError: not delivered."""


def is_mail_address(text: str) -> bool:
    """One address, with nothing that a header or a mail server could read as more."""
    return _MAIL.fullmatch(text) is not None


def why_not_notified(address: str, destinations: Destinations) -> str:
    """Why an address gets no notices; empty: it gets them."""
    if is_mail_address(address):
        return ""
    try:
        return "" if destinations.hook_at(address) is not None else not_listed("notify")
    except BadAddress:
        return "it is neither a mail address nor an http(s) URL"


def severity_name(severity: Severity) -> str:
    return Severity.Name(severity).removeprefix("SEVERITY_").lower()


def addresses_for(recipients: Iterable[Recipient], severity: Severity) -> list[str]:
    """A recipient hears its own severity and everything above."""
    return sorted({one.address for one in recipients if one.severity <= severity})


def warnings_of(project: Project) -> list[str]:
    """Warn of missing recipients: a fuse that trips unnoticed stays tripped."""
    heard = addresses_for(project.notifications.recipient, SEVERITY_CRITICAL)
    return [] if heard else [f"project {project.id}: nobody receives critical notices: add a recipient"]


class Outbox:
    """Queues notices and delivers them, each to everybody who hears it; those of a project hold up no other's.

    Attributes:
        recent: the last thousand, oldest first.
        sent, lost: how many deliveries there were, by severity.
    """

    def __init__(
        self, ways: Sequence[Way], recipients: Callable[[str], Sequence[Recipient]], retry_s: float = _RETRY_S
    ) -> None:
        """`recipients`: of a project; of the administrators for the empty name."""
        self._ways, self._recipients, self._retry_s = ways, recipients, retry_s
        self._queues: dict[str, asyncio.Queue[Notice]] = {}
        self._new: asyncio.Queue[asyncio.Queue[Notice]] = asyncio.Queue()
        self.recent: deque[Notice] = deque(maxlen=_KEPT)
        self.sent: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()

    def send(self, notices: Iterable[Notice]) -> None:
        """Never waits; a full queue loses the notice, which is counted and logged."""
        for notice in notices:
            level = _LEVELS.get(notice.severity, logging.INFO)
            log.log(level, "%s: %s", notice.project or "all", " ".join(notice.text.split()))
            self.recent.append(notice)
            try:
                self._queue_of(notice.project).put_nowait(notice)
            except asyncio.QueueFull:
                self.lost[severity_name(notice.severity)] += 1

    async def run(self) -> None:
        """Deliver until cancelled: its owners choose a project's recipients, who may be slow, or many."""
        async with asyncio.TaskGroup() as projects:
            while True:
                projects.create_task(self._deliver_all(await self._new.get()))

    def _queue_of(self, project: str) -> asyncio.Queue[Notice]:
        queue = self._queues.get(project)
        if queue is None:
            queue = self._queues[project] = asyncio.Queue(maxsize=_MOST_WAITING)
            self._new.put_nowait(queue)
        return queue

    async def _deliver_all(self, queue: asyncio.Queue[Notice]) -> None:
        while True:
            notice = await queue.get()
            for address in addresses_for(self._recipients(notice.project), notice.severity):
                await self._deliver(address, notice)

    async def _deliver(self, address: str, notice: Notice) -> None:
        way = next((way for way in self._ways if way.takes(address)), None)
        if way is None:
            self._lose(address, notice, "no delivery is configured for such an address")
            return
        for attempt in range(_ATTEMPTS):
            try:
                await way.deliver(address, notice)
            except OSError as error:
                if attempt + 1 == _ATTEMPTS:
                    self._lose(address, notice, str(error))
                else:
                    await asyncio.sleep(self._retry_s * 2**attempt)
            else:
                self.sent[severity_name(notice.severity)] += 1
                return

    def _lose(self, address: str, notice: Notice, why: str) -> None:
        self.lost[severity_name(notice.severity)] += 1
        log.error("notice to %s not delivered: %s: %s", address, why, notice.text)


_TIMEOUT_S: Final = 10.0


class WebhookNotifier:
    """POSTs `{"severity", "project", "host", "text"}`; anything but 2xx is a failure."""

    def __init__(self, destinations: Destinations, calls: OutgoingCalls) -> None:
        self._destinations, self._calls = destinations, calls

    def takes(self, address: str) -> bool:
        return not is_mail_address(address) and not why_not_notified(address, self._destinations)

    async def deliver(self, address: str, notice: Notice) -> None:
        body = {
            "severity": severity_name(notice.severity),
            "project": notice.project,
            "host": notice.host,
            "text": notice.text,
        }
        endpoint = self._destinations.hook_at(address)
        if endpoint is None:
            raise OSError(not_listed("notify"))
        try:
            reply = await self._calls.send("POST", address, body=body, headers=endpoint.headers(), tls=endpoint.tls)
        except OutgoingCallFailed as error:
            raise OSError(str(error)) from error
        if not reply.is_success:
            raise OSError(f"HTTP {reply.status}")


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """`host:port`; a user needs a password, and gets STARTTLS.

    Attributes:
        tls: trusts the CA of the server; None: the usual ones.
    """

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)
    tls: SSLContext | None = None


class Mail:
    """Sends one mail per notice."""

    def __init__(self, server: SmtpServer) -> None:
        self._server = server

    def takes(self, address: str) -> bool:
        return is_mail_address(address)

    async def deliver(self, address: str, notice: Notice) -> None:
        await asyncio.to_thread(self._send, address, notice)

    def _send(self, address: str, notice: Notice) -> None:
        mail = EmailMessage()
        # A line break in a subject would inject a header.
        subject = " ".join(notice.text.split())[:150]
        mail["Subject"] = f"[wall-e {severity_name(notice.severity)}] {subject}"
        mail["From"], mail["To"] = self._server.sender, address
        mail.set_content(f"{notice.text}\n\nproject: {notice.project or 'all'}\nhost: {notice.host or '-'}\n")
        try:
            with smtplib.SMTP(self._server.host, self._server.port, timeout=_TIMEOUT_S) as smtp:
                if self._server.user:
                    # Without a context of ours anybody's certificate would do, and get the password.
                    smtp.starttls(context=self._server.tls or ssl.create_default_context())
                    smtp.login(self._server.user, self._server.password)
                smtp.send_message(mail)
        except smtplib.SMTPException as error:  # already an OSError, but its bare subclasses need a text
            raise OSError(f"{type(error).__name__}: {error}") from error
