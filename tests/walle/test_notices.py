"""Notices reach people: over a real mail server and by webhook; what is not delivered is counted."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, nullcontext
from pathlib import Path

import httpx
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from serving.errors import InvalidRequest
from tests.support.certificates import Authority
from tests.support.reserved_port import kept_ports
from tests.support.walle.anywhere import ANYWHERE
from tests.support.walle.listener import answer
from tests.support.walle.running import LastingStore, pretending, running
from walle.api.checking import check_destinations
from walle.notices import Mail, SmtpServer, WebhookNotifier, addresses_for, warnings_of
from walle.outgoing.calls import OutgoingCalls
from walle.process.config import FileConfig
from walle.work.book import Notice
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.project_pb2 import (
    SEVERITY_CRITICAL,
    SEVERITY_ERROR,
    SEVERITY_INFO,
    SEVERITY_WARNING,
    NoticeRecord,
    Notifications,
    Project,
    Recipient,
)

TRIPPED = NoticeRecord(
    id="c4",
    severity=SEVERITY_CRITICAL,
    project="web",
    text="healing is switched off in web: limit UNREACHABLE 1d:10 would be exceeded",
    count=3,
    due_ms=1000,
    rounds=2,
)


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
    kept, port = Kept(), kept_ports()[0]
    controller = Controller(kept, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield kept, Mail(SmtpServer("127.0.0.1", port, "wall-e@example.net"))
    finally:
        controller.stop()


async def test_a_critical_notice_comes_by_mail(mail: tuple[Kept, Mail]) -> None:
    kept, way = mail
    await way.deliver("oncall@example.net", TRIPPED)
    ((to, text),) = kept.mails
    assert to == ["oncall@example.net"]
    assert "Subject: [wall-e critical] healing is switched off in web" in text
    assert "project: web" in text
    assert "Message-ID: <c4-3e8-2@example.net>" in text


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

    kept, port = Kept(), kept_ports()[0]
    controller = Controller(kept, hostname="127.0.0.1", port=port, tls_context=server, authenticator=check)
    controller.start()
    try:
        tls = ssl.create_default_context(cafile=authorities[trusted].cert) if trusted in authorities else None
        way = Mail(SmtpServer("127.0.0.1", port, "wall-e@example.net", "wall-e", "secret", tls))
        with nullcontext() if trusted == "mine" else pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            await way.deliver("oncall@example.net", TRIPPED)
    finally:
        controller.stop()
    assert (len(kept.mails), len(logins)) == ((1, 1) if trusted == "mine" else (0, 0))


async def test_line_breaks_in_a_notice_make_no_headers_in_its_mail(mail: tuple[Kept, Mail]) -> None:
    kept, way = mail
    bad = NoticeRecord(severity=SEVERITY_ERROR, text="h1: rejected\nBcc: everybody@example.net")
    await way.deliver("oncall@example.net", bad)
    head = kept.mails[0][1].partition("\r\n\r\n")[0]
    assert not any(line.startswith("Bcc:") for line in head.splitlines())


async def test_a_webhook_gets_json() -> None:
    got: list[dict[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        got.append(json.loads(request.content))
        return httpx.Response(204)

    async with aclosing(OutgoingCalls(httpx.MockTransport(answer))) as calls:
        await WebhookNotifier(ANYWHERE, calls).deliver("https://chat.example.net/hook", TRIPPED)
    expected = {
        "id": "c4-3e8-2",
        "count": 3,
        "severity": "critical",
        "project": "web",
        "host": "",
        "text": TRIPPED.text,
    }
    assert got == [expected]


class Hooks:
    """Webhooks of several people: some answer, some do not, some are slow."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, str]] = []
        self.fails: set[str] = set()
        self.stalls = asyncio.Event()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = int(head.lower().partition("content-length: ")[2].partition("\r")[0])
        body, who = json.loads(await reader.readexactly(size)), head.split()[1].strip("/")
        self.got.append((who, body["text"], body["id"]))
        if who.startswith("slow"):
            await self.stalls.wait()
        writer.write(answer(500 if who in self.fails else 200))
        writer.close()

    def heard(self, who: str) -> list[str]:
        return [text for name, text, _ in self.got if name == who]


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    made = Hooks()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    made.stalls.set()
    server.close()


def notified(hooks: Hooks, *names: str) -> FileConfig:
    recipients = (Recipient(severity=SEVERITY_ERROR, address=f"{hooks.url}/{name}") for name in names)
    return pretending(recipients=tuple(recipients))


async def test_a_slow_or_failing_address_delays_nobody_else_and_shows_what_is_wrong(hooks: Hooks) -> None:
    hooks.fails = {"away"}
    async with running(file=notified(hooks, "slow", "away", "fine", "nobody")) as walle:
        outbox, records = walle.server.automaton.outbox, walle.server.automaton.notices
        outbox.send([Notice(SEVERITY_ERROR, "", "one"), Notice(SEVERITY_ERROR, "", "two")])
        await walle.until(lambda: len(hooks.heard("fine")) == 2, "the others hear both")
        await walle.until(lambda: any("HTTP 500" in one.problem for one in records.values()), "the problem shows")
        assert [len(set(hooks.heard(who))) for who in ("slow", "away")] == [1, 1]  # the first of them, perhaps again
        await walle.until(lambda: sum(outbox.waiting().values()) == 4, "what was heard is noted")
        assert not outbox.lost


@pytest.mark.long
async def test_recipients_of_one_project_do_not_delay_the_notices_of_others(hooks: Hooks) -> None:
    async with running(file=notified(hooks, "fine")) as walle:
        slow = [Recipient(severity=SEVERITY_ERROR, address=f"{hooks.url}/slow-{n}") for n in range(40)]
        noisy = Project(id="noisy", notifications=Notifications(recipient=slow))
        await walle.call(pb.CreateProjectRequest(project=noisy))
        outbox = walle.server.automaton.outbox
        outbox.send([Notice(SEVERITY_ERROR, "noisy", "rack r1")])
        await walle.until(lambda: len(hooks.got) == 8, "its share of the deliveries is under way")
        outbox.send([Notice(SEVERITY_CRITICAL, "", "healing is off")])
        await walle.until(lambda: hooks.heard("fine") == ["healing is off"], "the administrators hear theirs")
        assert len(hooks.got) == 9
        hooks.stalls.set()
        await walle.until(lambda: not outbox.waiting().total(), "the others of the project come after them")
        assert len({who for who, _, _ in hooks.got}) == 41


async def test_a_mail_server_that_does_not_answer_takes_no_thread_of_others() -> None:
    came, over = asyncio.Event(), asyncio.Event()

    async def stall(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await over.wait()
        writer.close()

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    async with await asyncio.start_server(stall, "127.0.0.1", 0) as server:
        way = Mail(SmtpServer("127.0.0.1", server.sockets[0].getsockname()[1], "wall-e@example.net"))
        mail = asyncio.create_task(way.deliver("oncall@example.net", TRIPPED))
        await came.wait()
        await asyncio.to_thread(int)
        assert not mail.done()
        over.set()
        with pytest.raises(OSError, match="closed"):
            await mail


@pytest.mark.long
async def test_an_undelivered_notice_is_sent_by_the_next_process_with_the_same_id(hooks: Hooks) -> None:
    store = LastingStore()
    async with running(store, notified(hooks, "slow")) as walle:
        walle.server.automaton.outbox.send([Notice(SEVERITY_ERROR, "", "one")])
        await walle.until(lambda: len(hooks.got) == 1, "it is on its way")
    hooks.stalls.set()
    async with running(store, notified(hooks, "slow"), name="walle-2") as walle:
        records = walle.server.automaton.notices
        await walle.until(lambda: bool(records) and not any(one.pending for one in records.values()), "it has arrived")
    assert len(hooks.got) >= 2
    assert len(set(hooks.got)) == 1, "each has the same id"


async def test_notices_are_listed_in_pages_and_acknowledged(hooks: Hooks) -> None:
    hooks.fails = {"away"}
    async with running(file=notified(hooks, "away")) as walle:
        records = walle.server.automaton.notices
        walle.server.automaton.outbox.send(Notice(SEVERITY_ERROR, "", f"notice {n}") for n in range(5))
        await walle.until(lambda: len(records) == 5, "they are stored")
        texts, token = list[str](), ""
        while True:
            page = await walle.call(pb.ListNoticesRequest(page_size=2, page_token=token))
            texts += [one["text"] for one in page["notices"]]
            if not (token := page.get("nextPageToken", "")):
                break
        assert sorted(texts) == [f"notice {n}" for n in range(5)]
        first = next(iter(records))
        await walle.call(pb.AcknowledgeNoticeRequest(notice=first), status=400)
        await walle.call(pb.AcknowledgeNoticeRequest(notice=first, reason="on it"))
        await walle.call(pb.AcknowledgeNoticeRequest(notice="none", reason="on it"), status=404)
        await walle.until(lambda: not records[first].pending, "it is not sent any more")
        assert len((await walle.call(pb.ListNoticesRequest()))["notices"]) == 4
        assert len((await walle.call(pb.ListNoticesRequest(all=True)))["notices"]) == 5
        assert not (await walle.call(pb.ListNoticesRequest(all=True, severity=SEVERITY_CRITICAL))).get("notices")


async def test_a_notice_without_a_configured_delivery_is_lost_and_counted() -> None:
    recipient = Recipient(severity=SEVERITY_ERROR, address="oncall@example.net")
    async with running(file=pretending(recipients=(recipient,))) as walle:
        outbox, records = walle.server.automaton.outbox, walle.server.automaton.notices
        outbox.send([Notice(SEVERITY_ERROR, "", "one")])
        await walle.until(lambda: outbox.lost == {"error": 1}, "it is lost")
        await walle.until(lambda: not any(one.pending for one in records.values()), "it does not wait")
        assert "no delivery is configured" in next(iter(records.values())).problem


def test_a_project_has_fifty_recipients_at_most() -> None:
    recipients = [Recipient(severity=SEVERITY_ERROR, address=f"ann-{n}@example.net") for n in range(51)]
    check_destinations((), Notifications(recipient=recipients[1:]), ANYWHERE)
    with pytest.raises(InvalidRequest, match=r"notifications\.recipient.*51; at most 50"):
        check_destinations((), Notifications(recipient=recipients), ANYWHERE)


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
