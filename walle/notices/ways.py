"""Ways of notices: a webhook by POST of JSON, and mail by SMTP."""

from __future__ import annotations

import asyncio
import smtplib
from dataclasses import dataclass
from email.message import EmailMessage

import httpx

from walle.notices.outbox import severity_name
from walle.work.book import Notice

_TIMEOUT_S = 10.0


class Webhook:
    """POSTs `{"severity", "project", "host", "text"}`; anything but 2xx is a failure."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    def takes(self, address: str) -> bool:
        return address.startswith(("http://", "https://"))

    async def deliver(self, address: str, notice: Notice) -> None:
        body = {
            "severity": severity_name(notice.severity),
            "project": notice.project,
            "host": notice.host,
            "text": notice.text,
        }
        try:
            response = await self._http.post(address, json=body, timeout=_TIMEOUT_S)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        if not response.is_success:
            raise OSError(f"HTTP {response.status_code}")


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """`host:port`; a user needs a password, and gets STARTTLS."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = ""


class Mail:
    """Sends one mail per notice."""

    def __init__(self, server: SmtpServer) -> None:
        self._server = server

    def takes(self, address: str) -> bool:
        return "@" in address and "://" not in address

    async def deliver(self, address: str, notice: Notice) -> None:
        await asyncio.to_thread(self._send, address, notice)

    def _send(self, address: str, notice: Notice) -> None:
        mail = EmailMessage()
        # A line break in a subject would be a header of somebody else's choice.
        subject = " ".join(notice.text.split())[:150]
        mail["Subject"] = f"[wall-e {severity_name(notice.severity)}] {subject}"
        mail["From"], mail["To"] = self._server.sender, address
        mail.set_content(f"{notice.text}\n\nproject: {notice.project or 'all'}\nhost: {notice.host or '-'}\n")
        try:
            with smtplib.SMTP(self._server.host, self._server.port, timeout=_TIMEOUT_S) as smtp:
                if self._server.user:
                    smtp.starttls()
                    smtp.login(self._server.user, self._server.password)
                smtp.send_message(mail)
        except smtplib.SMTPException as error:  # is an OSError already, but for its bare subclasses' texts
            raise OSError(f"{type(error).__name__}: {error}") from error
