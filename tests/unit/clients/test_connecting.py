"""Each cause of a failed connection, made with a real socket, and what people read of it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from google.protobuf import struct_pb2

from console.backends.asking import Trouble
from console.backends.remote import Remote
from federated.clock import FederatedSystemClock
from federated.locations.channel import Dialer
from federated.locations.config import LocationConfig
from federated.locations.location import Location
from hq.keys import HqKeys
from hqcli.exits import Exit
from hqclient.client import Client, ClientSettings
from hqclient.connecting import NOT_GRPC, _speaks_tls, why_unreachable
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from hqclient.errors import HqApiError
from hqclient.retry import RetrySettings
from hqclient.watch_items import Interrupted
from nanny.world.cms import CmsLeave
from recorder.servers import NannySource, ServerProcesses
from serving.clock import SystemClock
from serving.storage.flags import etcd_config
from store.epoch import Epoch
from store.etcd import EtcdStore
from store.follow import StoreFollower
from tests.support.certificates import Authority, Certificate
from tests.support.store_parts import Mirror
from tests.unit.project.test_command_line import ASK, cli

SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
PLAIN = CredentialFiles()
Answer = Callable[[socket.socket], None]


@contextmanager
def listening(answer: Answer) -> Iterator[int]:
    """The port of a server that runs `answer` on each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as ended:
        port = int(server.getsockname()[1])

        def talk(taken: socket.socket) -> None:
            with taken, suppress(OSError):
                taken.settimeout(5)
                answer(taken)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=talk, args=server.accept()[:1], daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        ended.callback(server.shutdown, socket.SHUT_RDWR)
        yield port


def http1(stream: socket.socket) -> None:
    stream.recv(100)
    stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def http2(stream: socket.socket) -> None:
    stream.recv(100)
    stream.sendall(SETTINGS)
    stream.recv(100)


def with_tls(held: Certificate, callers: Path | None = None, protocols: tuple[str, ...] = ("h2",)) -> Answer:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=callers)
    context.load_cert_chain(held.cert, held.key)
    context.set_alpn_protocols(list(protocols))
    context.verify_mode = ssl.CERT_REQUIRED if callers else ssl.CERT_NONE

    def answer(stream: socket.socket) -> None:
        with context.wrap_socket(stream, server_side=True) as tls:
            http2(tls)

    return answer


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("theirs"), "stranger")


def why(answer: Answer, files: CredentialFiles, host: str = "127.0.0.1") -> str:
    with listening(answer) as port:
        return why_unreachable(f"{host}:{port}", files)


def test_without_tls_each_cause_of_failure_is_named() -> None:
    for host in ("no-such-host.invalid", "hq..example", "x" * 64):  # the last two are no names at all
        assert why_unreachable(f"{host}:7071", PLAIN) == f"the name {host} cannot be resolved: check its spelling"
    assert why_unreachable("127.0.0.1:1", PLAIN) == "nothing listens there: start it, or check the port"
    assert why(http1, PLAIN) == NOT_GRPC
    assert why(http2, PLAIN) == ""


@pytest.mark.parametrize("of_tls", [True, False])
def test_no_socket_is_left_open_if_the_connection_is_reset_before_the_handshake(
    monkeypatch: pytest.MonkeyPatch, authority: Authority, *, of_tls: bool
) -> None:
    def reset_socket(_: str) -> socket.socket:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            stream = socket.create_connection(listener.getsockname())
            other, _address = listener.accept()
        other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset, not closed
        other.close()
        select.select([stream], [], [])
        return stream

    monkeypatch.setattr("hqclient.connecting._open", reset_socket)
    if of_tls:
        assert "hangs up" in why_unreachable("127.0.0.1:1", CredentialFiles(ca=str(authority.cert)))
    else:
        assert not _speaks_tls("127.0.0.1:1")
    gc.collect()  # whatever is found open makes the test fail


@contextmanager
def full_backlog() -> Iterator[str]:
    """The address of a listener whose backlog is full: the kernel drops new connections."""
    with socket.socket() as full, ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        for _ in range(3):  # more than the backlog holds: the kernel drops what comes next
            held = waiting.enter_context(socket.socket())
            held.setblocking(False)
            held.connect_ex(address)
        yield f"127.0.0.1:{address[1]}"


def test_a_connection_that_is_never_accepted_is_reported_as_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hqclient.connecting._PATIENCE_S", 0.1)
    with full_backlog() as address:
        assert "it does not answer in time: check that the machine is on" in why_unreachable(address, PLAIN)


def test_a_server_that_hangs_or_answers_in_parts_is_not_said_to_lack_grpc(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_parts(stream: socket.socket) -> None:
        for part in (SETTINGS[:4], SETTINGS[4:]):
            stream.sendall(part)
            time.sleep(0.05)
        stream.recv(100)

    assert why(in_parts, PLAIN) == ""
    monkeypatch.setattr("hqclient.connecting._PATIENCE_S", 0.2)
    for files in (PLAIN, CredentialFiles(ca=str(authority.cert))):
        assert why(lambda stream: time.sleep(0.5), files).startswith("it takes connections and says nothing")


def test_with_tls_each_cause_of_failure_is_named(authority: Authority, stranger: Authority) -> None:
    ours = CredentialFiles(ca=str(authority.cert))
    good = authority.issue("server")
    assert why(with_tls(good), ours) == ""
    assert why(with_tls(good), PLAIN) == "it speaks TLS: give --ca"
    assert why(http1, ours) == "it does not speak TLS: leave out --ca, or check the port"
    assert f"is not from the CA in {authority.cert}" in why(with_tls(stranger.issue("server")), ours)
    expired = authority.issue("expired", good_for=timedelta(hours=-1))
    assert why(with_tls(expired), ours).startswith("its certificate has expired: renew it there")
    assert why(with_tls(good), ours, "127.0.0.2").startswith("nothing listens there")
    assert why(with_tls(good, protocols=("http/1.1",)), ours) == NOT_GRPC


def test_an_address_that_the_certificate_lacks_is_named(authority: Authority) -> None:
    with listening(with_tls(authority.issue("server"))) as port:
        said = why_unreachable(f"127.1:{port}", CredentialFiles(ca=str(authority.cert)))
    assert said == "its certificate is not for 127.1: check the address, or name it as the certificate does"


def test_a_missing_or_refused_certificate_of_the_caller_is_named(authority: Authority, stranger: Authority) -> None:
    answer = with_tls(authority.issue("server"), callers=authority.cert)
    assert "requires a certificate of the caller: give --cert" in why(answer, CredentialFiles(ca=str(authority.cert)))
    held, theirs = authority.issue("caller"), stranger.issue("caller")
    assert why(answer, CredentialFiles(str(authority.cert), str(held.cert), str(held.key))) == ""
    shown = CredentialFiles(str(authority.cert), str(theirs.cert), str(theirs.key))
    assert f"it refuses the certificate in {theirs.cert}" in why(answer, shown)


class Lost:
    """Notes why servers are lost to the recorder."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[str] = asyncio.Queue()

    def now_ms(self) -> int:
        return 1

    def add_decisions(self, server: str, rows: object, chunks: object = ()) -> bool:
        raise AssertionError(server)

    def lose_server(self, server: str, reason: str) -> None:
        self.told.put_nowait(reason)


async def from_library(address: str, credentials: Credentials) -> str:
    settings = ClientSettings(retry=RetrySettings(max_rounds=1))
    async with Client([address], credentials=credentials, settings=settings) as client:
        with pytest.raises(HqApiError) as failed:
            await client.get("web-1")
        assert not failed.value.sent
        async with client.watch() as items:  # as discovery, gateways and controllers do
            item = await anext(items)
        assert isinstance(item, Interrupted)
        assert str(item.error) == str(failed.value)
        return str(failed.value)


async def from_console(address: str, credentials: Credentials) -> str:
    remote = Remote("Nanny", [address], credentials)
    found = await remote.read("/nanny.v1.NannyService/GetControl", struct_pb2.Struct(), bytes, wait_s=5.0)
    await remote.close()
    assert isinstance(found, Trouble)
    return found.text


async def from_nanny(address: str, credentials: Credentials) -> str:
    cms = CmsLeave([address], SystemClock(), credentials)
    answer = await cms.confirm("task-1")
    await cms.close()
    return answer.why


async def from_recorder(address: str, credentials: Credentials) -> str:
    lost = Lost()
    following = asyncio.create_task(NannySource(ServerProcesses([address], credentials)).run(lost, 1))
    reason = await lost.told.get()
    following.cancel()
    return reason


async def from_federation(address: str, credentials: Credentials) -> str:
    clock = FederatedSystemClock()
    east = Location(LocationConfig("east", (address,)), clock, random.Random(1), Dialer(credentials), 0)
    told: list[str] = []
    watching = logging.Handler()
    watching.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("federated.locations.location_health")
    logger.addHandler(watching)
    try:
        await east.probes.probe()
    finally:
        logger.removeHandler(watching)
        await east.close()
    return told[-1]


PROGRAMS_THAT_GO_ON = (from_library, from_console, from_nanny, from_recorder, from_federation)


async def check_all(address: str, files: CredentialFiles, why: str) -> None:
    said = await asyncio.gather(*(ask(address, Credentials(files)) for ask in PROGRAMS_THAT_GO_ON))
    for ask, text in zip(PROGRAMS_THAT_GO_ON, said, strict=True):
        assert f"cannot connect to {address}: {why}" in text, ask


def test_long_running_programs_name_each_cause_in_the_same_words(
    authority: Authority, stranger: Authority, tmp_path: Path
) -> None:
    ours, good = CredentialFiles(ca=str(authority.cert)), authority.issue("server")
    theirs = stranger.issue("caller")
    shown = CredentialFiles(str(authority.cert), str(theirs.cert), str(theirs.key))
    callers = with_tls(good, callers=authority.cert)
    expired = authority.issue("expired", good_for=timedelta(hours=-1))
    for answer, files, host, why in (
        (http1, PLAIN, "127.0.0.1", NOT_GRPC),
        (with_tls(good), PLAIN, "127.0.0.1", "it speaks TLS: give --ca"),
        (http1, ours, "127.0.0.1", "it does not speak TLS: leave out --ca"),
        (with_tls(good, protocols=("http/1.1",)), ours, "127.0.0.1", NOT_GRPC),
        (with_tls(expired), ours, "127.0.0.1", "its certificate has expired: renew it there"),
        (with_tls(theirs), ours, "127.0.0.1", f"its certificate is not from the CA in {authority.cert}"),
        (with_tls(good), ours, "127.1", "its certificate is not for 127.1"),
        (callers, ours, "127.0.0.1", "it requires a certificate of the caller: give --cert and --key"),
        (callers, shown, "127.0.0.1", f"it refuses the certificate in {theirs.cert}"),
    ):
        with listening(answer) as port:
            asyncio.run(check_all(f"{host}:{port}", files, why))
    asyncio.run(check_all("127.0.0.1:1", PLAIN, "nothing listens there: start it, or check the port"))
    asyncio.run(check_all("no-such-host.invalid:7071", PLAIN, "the name no-such-host.invalid cannot be resolved"))
    asyncio.run(check_all(f"unix:{tmp_path}/none", PLAIN, "there is no such socket"))


def test_a_long_running_program_names_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hqclient.connecting._PATIENCE_S", 0.1)

    async def ask(address: str) -> str:
        settings = ClientSettings(connect_timeout_s=0.2, retry=RetrySettings(max_rounds=1))
        async with Client([address], settings=settings) as client:
            with pytest.raises(HqApiError) as failed:
                await client.get("web-1")
            return str(failed.value)

    with listening(lambda stream: time.sleep(0.5)) as port:
        assert "it takes connections and says nothing: look at its process" in asyncio.run(ask(f"127.0.0.1:{port}"))
    with full_backlog() as address:
        assert "it does not answer in time: check that the machine is on" in asyncio.run(ask(address))


def test_servers_say_why_their_store_cannot_be_reached(
    authority: Authority, stranger: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def follow(*words: str) -> str:
        given = {"etcd_ca": "", "etcd_cert": "", "etcd_key": "", "etcd_user": "", "etcd_password_file": ""}
        store = EtcdStore(etcd_config(given | dict(zip(words[::2], words[1::2], strict=True))))
        keys, rng = HqKeys(), random.Random(1)
        following = asyncio.create_task(StoreFollower(store, keys, Mirror(), Epoch(store, keys, rng), rng).run())
        while not (told := [record.getMessage() for record in caplog.records if "--etcd" in record.getMessage()]):
            await asyncio.sleep(0.02)
        following.cancel()
        await store.close()
        caplog.clear()
        return told[0]

    said = asyncio.run(follow("etcd", "127.0.0.1:1"))
    assert "etcd: cannot connect to 127.0.0.1:1: nothing listens there: start it" in said
    with listening(with_tls(stranger.issue("etcd"))) as port:
        said = asyncio.run(follow("etcd", f"127.0.0.1:{port}", "etcd_ca", str(authority.cert)))
    assert f"is not from the CA in {authority.cert}: give the right one with --etcd-ca; trying again" in said


@pytest.mark.long
def test_the_cause_is_one_line_without_the_log_of_grpc(authority: Authority, stranger: Authority) -> None:
    root = Path(__file__).resolve().parents[3]
    env = {"PATH": os.defpath, "HQ_CONFIG": "", "PYTHONPATH": f"{root}:{root}/proto:{root}/clients"}
    with listening(with_tls(stranger.issue("server"))) as port:
        words = ["-m", "hqctl.main", "get", "x", "--server", f"127.0.0.1:{port}", "--ca", str(authority.cert)]
        done = subprocess.run(
            [sys.executable, *words], env=env, capture_output=True, text=True, check=False, timeout=60
        )
    [line] = done.stderr.splitlines()
    assert line.startswith(f"hqctl: cannot connect to 127.0.0.1:{port}: its certificate is not from the CA in")


@pytest.mark.parametrize("program", ASK)
def test_each_program_names_the_cause_of_failure(program: str, authority: Authority, stranger: Authority) -> None:
    where = {"hqctl": "--server", "nanny": "--nanny", "walle": "--server"}[program]
    with listening(with_tls(stranger.issue("server"))) as port:
        words = [*ASK[program], where, f"127.0.0.1:{port}", "--ca", str(authority.cert), "--timeout", "10s"]
        answer = CliRunner().invoke(cli(program), words, env={"HQ_CONFIG": ""})
    assert answer.exit_code == Exit.UNAVAILABLE
    assert f"127.0.0.1:{port}" in answer.stderr
    assert f"its certificate is not from the CA in {authority.cert}" in answer.stderr
