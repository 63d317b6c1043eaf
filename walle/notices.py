"""Notices: who hears them, and the channels that carry them."""

from __future__ import annotations

import asyncio
import re
import smtplib
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.message import EmailMessage
from ssl import SSLContext
from typing import Final, Protocol

from control.outgoing import OutgoingCallFailed
from walle.outgoing.calls import OutgoingCalls
from walle.outgoing.destinations import BadAddress, Destinations, not_listed
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL, NoticeRecord, Project, Recipient, Severity

_MAIL: Final = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,63}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
)


class Way(Protocol):
    """How a notice gets to somebody.

    Attributes:
        name: a lower-case word.
        most_at_once: how many deliveries it makes at a time.
    """

    name: str
    most_at_once: int

    def takes(self, address: str) -> bool:
        """Whether this channel handles such an address."""

    async def deliver(self, address: str, notice: NoticeRecord) -> None:
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


_TIMEOUT_S: Final = 10.0


def delivery_id(notice: NoticeRecord) -> str:
    """The id of a delivery: the same when it is repeated, as its arrival is unknown, and never another delivery's.

    It has the time, as rounds start over when a cause was quiet for a day, or its record is gone.
    """
    return f"{notice.id}-{notice.due_ms:x}-{notice.rounds}"


class WebhookNotifier:
    """POSTs `{"id", "severity", "project", "host", "text", "count"}`; anything but 2xx is a failure."""

    name = "webhook"
    most_at_once = 32

    def __init__(self, destinations: Destinations, calls: OutgoingCalls) -> None:
        self._destinations, self._calls = destinations, calls

    def takes(self, address: str) -> bool:
        return not is_mail_address(address) and not why_not_notified(address, self._destinations)

    async def deliver(self, address: str, notice: NoticeRecord) -> None:
        body = {
            "id": delivery_id(notice),
            "count": notice.count,
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
    """Sends one mail per notice, in threads of its own: a server that does not answer holds up no other work."""

    name = "mail"
    most_at_once = 4

    def __init__(self, server: SmtpServer) -> None:
        self._server, self._threads = server, ThreadPoolExecutor(self.most_at_once, "mail")

    def takes(self, address: str) -> bool:
        return is_mail_address(address)

    async def deliver(self, address: str, notice: NoticeRecord) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, self._send, address, notice)

    def _send(self, address: str, notice: NoticeRecord) -> None:
        mail = EmailMessage()
        # A line break in a subject would inject a header.
        subject = " ".join(notice.text.split())[:150]
        mail["Subject"] = f"[wall-e {severity_name(notice.severity)}] {subject}"
        mail["From"], mail["To"] = self._server.sender, address
        mail["Message-ID"] = f"<{delivery_id(notice)}@{self._server.sender.rpartition('@')[2]}>"
        mail.set_content(
            f"{notice.text}\n\nproject: {notice.project or 'all'}\nhost: {notice.host or '-'}\ntimes: {notice.count}\n"
        )
        try:
            with smtplib.SMTP(self._server.host, self._server.port, timeout=_TIMEOUT_S) as smtp:
                if self._server.user:
                    # Without a context of ours a server with any certificate would get the password.
                    smtp.starttls(context=self._server.tls or ssl.create_default_context())
                    smtp.login(self._server.user, self._server.password)
                smtp.send_message(mail)
        except smtplib.SMTPException as error:  # already an OSError, but its bare subclasses need a text
            raise OSError(f"{type(error).__name__}: {error}") from error
