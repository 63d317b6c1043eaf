"""Notices reach people: over a real mail server and by webhook; what is not delivered is counted."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from tests.support.certificates import Authority
from tests.support.walle.anywhere import ANYWHERE
from tests.support.walle.counterparts import free_port
from walle.notices import Mail, Outbox, SmtpServer, Way, WebhookNotifier, addresses_for, warnings_of
from walle.outgoing.calls import OutgoingCalls
from walle.work.book import Notice
from wallepb.v1.project_pb2 import (
    SEVERITY_CRITICAL,
    SEVERITY_ERROR,
    SEVERITY_INFO,
    SEVERITY_WARNING,
    Notifications,
    Project,
    Recipient,
)

TRIPPED = Notice(SEVERITY_CRITICAL, "web", "healing is switched off in web: limit UNREACHABLE 1d:10 would be exceeded")


class Kept(Sink):
    """A mail server that keeps what it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.mails: list[tuple[list[str], str]] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        self.mails.append((list(envelope.rcpt_tos), envelope.content.decode()))
        return "250 OK"


@pytest.fixture
async def mail() -> AsyncIterator[tuple[Kept, Mail]]:
    kept, port = Kept(), free_port()
    controller = Controller(kept, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield kept, Mail(SmtpServer("127.0.0.1", port, "wall-e@example.net"))
    finally:
        controller.stop()


async def delivered(outbox: Outbox, *notices: Notice) -> None:
    outbox.send(notices)
    task = asyncio.create_task(outbox.run())
    wanted = len(notices) + sum(outbox.lost.values())
    for _ in range(200):
        if sum(outbox.sent.values()) + sum(outbox.lost.values()) >= wanted:
            break
        await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def outbox_of(*ways: Way, address: str) -> Outbox:
    return Outbox(ways, lambda project: [Recipient(severity=SEVERITY_ERROR, address=address)], retry_s=0.01)


async def test_a_critical_notice_comes_by_mail(mail: tuple[Kept, Mail]) -> None:
    kept, way = mail
    await delivered(outbox_of(way, address="oncall@example.net"), TRIPPED)
    ((to, text),) = kept.mails
    assert to == ["oncall@example.net"]
    assert "Subject: [wall-e critical] healing is switched off in web" in text
    assert "project: web" in text


class Silent:
    """A channel to somebody who never answers."""

    def takes(self, address: str) -> bool:
        return address == "silent"

    async def deliver(self, address: str, notice: Notice) -> None:
        await asyncio.Event().wait()


async def test_recipients_of_one_project_hold_up_no_notice_of_another(mail: tuple[Kept, Mail]) -> None:
    kept, way = mail
    addresses = {"web": "silent", "mail": "oncall@example.net"}
    outbox = Outbox(
        [Silent(), way], lambda project: [Recipient(severity=SEVERITY_ERROR, address=addresses[project])], retry_s=0.01
    )
    outbox.send([TRIPPED] * 2_000)
    await delivered(outbox, Notice(SEVERITY_CRITICAL, "mail", "healing is switched off in mail"))
    assert len(kept.mails) == 1
    assert outbox.lost["critical"] == 1_000


@pytest.mark.parametrize("trusted", ["mine", "other", "usual"])
async def test_the_password_goes_only_to_a_mail_server_that_shows_a_trusted_certificate(
    tmp_path: Path, trusted: str
) -> None:
    """Any certificate was taken, and a machine in between got the password."""
    authorities = {name: Authority(tmp_path / name) for name in ("mine", "other")}
    issued, server = authorities["mine"].issue("mail"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(issued.cert, issued.key)
    logins: list[object] = []

    def check(*given: object) -> AuthResult:
        logins.append(given[-1])
        return AuthResult(success=True)

    kept, port = Kept(), free_port()
    controller = Controller(kept, hostname="127.0.0.1", port=port, tls_context=server, authenticator=check)
    controller.start()
    try:
        tls = ssl.create_default_context(cafile=authorities[trusted].cert) if trusted in authorities else None
        way = Mail(SmtpServer("127.0.0.1", port, "wall-e@example.net", "wall-e", "secret", tls))
        await delivered(outbox_of(way, address="oncall@example.net"), TRIPPED)
    finally:
        controller.stop()
    assert (len(kept.mails), len(logins)) == ((1, 1) if trusted == "mine" else (0, 0))


async def test_line_breaks_of_others_make_no_headers(mail: tuple[Kept, Mail]) -> None:
    kept, way = mail
    bad = Notice(SEVERITY_ERROR, "web", "h1: rejected\nBcc: everybody@example.net")
    await delivered(outbox_of(way, address="oncall@example.net"), bad)
    head = kept.mails[0][1].partition("\r\n\r\n")[0]
    assert not any(line.startswith("Bcc:") for line in head.splitlines())


async def test_a_webhook_gets_json() -> None:
    got: list[dict[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        got.append(json.loads(request.content))
        return httpx.Response(204)

    async with aclosing(OutgoingCalls(httpx.MockTransport(answer))) as calls:
        await delivered(outbox_of(WebhookNotifier(ANYWHERE, calls), address="https://chat.example.net/hook"), TRIPPED)
    assert got == [{"severity": "critical", "project": "web", "host": "", "text": TRIPPED.text}]


async def test_it_is_tried_three_times_and_then_counted_as_lost() -> None:
    tries = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal tries
        tries += 1
        return httpx.Response(500)

    async with aclosing(OutgoingCalls(httpx.MockTransport(answer))) as calls:
        outbox = outbox_of(WebhookNotifier(ANYWHERE, calls), address="https://chat.example.net/hook")
        await delivered(outbox, TRIPPED)
    assert tries == 3
    assert outbox.lost == {"critical": 1}


async def test_a_mail_server_that_is_away_loses_nothing_silently() -> None:
    outbox = outbox_of(Mail(SmtpServer("127.0.0.1", free_port(), "wall-e@example.net")), address="a@example.net")
    await delivered(outbox, TRIPPED)
    assert outbox.lost == {"critical": 1}
    assert list(outbox.recent) == [TRIPPED]


def test_a_recipient_hears_its_own_severity_and_everything_above() -> None:
    recipients = [Recipient(severity=SEVERITY_WARNING, address="w"), Recipient(severity=SEVERITY_CRITICAL, address="c")]
    assert addresses_for(recipients, SEVERITY_INFO) == []
    assert addresses_for(recipients, SEVERITY_ERROR) == ["w"]
    assert addresses_for(recipients, SEVERITY_CRITICAL) == ["c", "w"]


def test_a_project_whose_critical_notices_reach_nobody_is_warned_about() -> None:
    project = Project(id="web")
    assert "nobody receives critical notices" in warnings_of(project)[0]
    project.notifications.CopyFrom(Notifications(recipient=[Recipient(severity=SEVERITY_INFO, address="a")]))
    assert warnings_of(project) == []
