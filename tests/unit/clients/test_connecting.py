"""Each cause of a failed connection, made with a real socket, and what people read of it."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner

from hqcli.connecting import NOT_GRPC, why_unreachable
from hqcli.exits import Exit
from hqclient.credential_files import CredentialFiles
from hqclient.errors import connection_words
from tests.support.certificates import Authority, Certificate
from tests.unit.project.test_command_line import ASK, cli

SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
PLAIN = CredentialFiles()
Answer = Callable[[socket.socket], None]


@contextmanager
def listening(answer: Answer) -> Iterator[int]:
    """The port of somebody who answers each connection so."""
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as ended:
        port = int(server.getsockname()[1])

        def serve() -> None:
            with suppress(OSError):
                while True:
                    taken, _ = server.accept()
                    with taken, suppress(OSError):
                        taken.settimeout(5)
                        answer(taken)

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


def test_without_tls_each_cause_is_told() -> None:
    for host in ("no-such-host.invalid", "hq..example", "x" * 64):  # the last two are no names at all
        assert why_unreachable(f"{host}:7071", PLAIN) == f"the name {host} cannot be resolved: check its spelling"
    assert why_unreachable("127.0.0.1:1", PLAIN) == "nothing listens there: start it, or check the port"
    assert why(http1, PLAIN) == NOT_GRPC
    assert why(http2, PLAIN) == ""


def test_who_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hqcli.connecting._PATIENCE_S", 0.1)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        with ExitStack() as waiting:
            for _ in range(3):  # more than the backlog holds: the kernel drops what comes next
                held = waiting.enter_context(socket.socket())
                held.setblocking(False)
                held.connect_ex(address)
            assert "it does not answer in time: check that the machine is on" in why_unreachable(
                f"127.0.0.1:{address[1]}", PLAIN
            )


def test_a_server_that_hangs_and_one_that_answers_in_parts_are_told_apart_from_what_is_not_grpc(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_parts(stream: socket.socket) -> None:
        for part in (SETTINGS[:4], SETTINGS[4:]):
            stream.sendall(part)
            time.sleep(0.05)
        stream.recv(100)

    assert why(in_parts, PLAIN) == ""
    monkeypatch.setattr("hqcli.connecting._PATIENCE_S", 0.2)
    for files in (PLAIN, CredentialFiles(ca=str(authority.cert))):
        assert why(lambda stream: time.sleep(0.5), files).startswith("it takes connections and says nothing")


def test_with_tls_each_cause_is_told(authority: Authority, stranger: Authority) -> None:
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


def test_a_name_that_the_certificate_does_not_have_is_told(authority: Authority) -> None:
    with listening(with_tls(authority.issue("server"))) as port:
        said = why_unreachable(f"127.1:{port}", CredentialFiles(ca=str(authority.cert)))
    assert said == "its certificate is not for 127.1: check the address, or name it as the certificate does"


def test_a_callers_certificate_that_is_required_or_refused_is_told(authority: Authority, stranger: Authority) -> None:
    answer = with_tls(authority.issue("server"), callers=authority.cert)
    assert "requires a certificate of the caller: give --cert" in why(answer, CredentialFiles(ca=str(authority.cert)))
    held, theirs = authority.issue("caller"), stranger.issue("caller")
    assert why(answer, CredentialFiles(str(authority.cert), str(held.cert), str(held.key))) == ""
    shown = CredentialFiles(str(authority.cert), str(theirs.cert), str(theirs.key))
    assert f"it refuses the certificate in {theirs.cert}" in why(answer, shown)


def words(answer: Answer, files: CredentialFiles, options: tuple[tuple[str, str], ...] = ()) -> str:
    """What programs say that go on: gRPC's own words, told anew."""
    with listening(answer) as port:
        contents = (Path(name).read_bytes() if name else None for name in (files.ca, files.key, files.cert))
        credentials = grpc.ssl_channel_credentials(*contents)
        address = f"127.0.0.1:{port}"
        with (
            (
                grpc.secure_channel(address, credentials, options) if files.ca else grpc.insecure_channel(address)
            ) as channel,
            pytest.raises(grpc.RpcError) as failed,
        ):
            channel.unary_unary("/a/b", bytes, bytes)(b"", timeout=20)
        return connection_words(str(failed.value.details())).removeprefix(f"cannot connect to {address}: ")


def test_programs_that_go_on_tell_the_causes_in_the_same_way(authority: Authority, stranger: Authority) -> None:
    ours, good = CredentialFiles(ca=str(authority.cert)), authority.issue("server")
    theirs = stranger.issue("caller")
    no_grpc = "what answers there is not gRPC"
    assert words(http1, PLAIN) == no_grpc
    assert words(http1, ours) == "it does not speak TLS"
    assert words(with_tls(good, protocols=("http/1.1",)), ours) == no_grpc
    expired = authority.issue("expired", good_for=timedelta(hours=-1))
    assert words(with_tls(expired), ours) == "its certificate has expired"
    assert words(with_tls(theirs), ours) == "its certificate is not from the CA that is trusted here"
    other = (("grpc.ssl_target_name_override", "other.example"),)
    assert words(with_tls(good), ours, other) == "its certificate is for another name"
    answer = with_tls(good, callers=authority.cert)
    refused = "it requires a certificate of the caller, or refuses the one it was shown"
    assert words(answer, ours) == refused
    assert words(answer, CredentialFiles(str(authority.cert), str(theirs.cert), str(theirs.key))) == refused


@pytest.mark.parametrize("program", ASK)
def test_each_program_tells_the_cause(program: str, authority: Authority, stranger: Authority) -> None:
    where = {"hqctl": "--server", "nanny": "--nanny", "walle": "--server"}[program]
    with listening(with_tls(stranger.issue("server"))) as port:
        words = [*ASK[program], where, f"127.0.0.1:{port}", "--ca", str(authority.cert), "--timeout", "10s"]
        answer = CliRunner().invoke(cli(program), words, env={"HQ_CONFIG": ""})
    assert answer.exit_code == Exit.UNAVAILABLE
    assert f"127.0.0.1:{port}" in answer.stderr
    assert f"its certificate is not from the CA in {authority.cert}" in answer.stderr
