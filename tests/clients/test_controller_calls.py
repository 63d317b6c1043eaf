"""Calls of `hqctl`, `nanny` and `walle` to a controller: the first process that answers, one id, one table of exits."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from cmspb.v1 import cms_pb2 as pb
from hqcli.call import Processes
from hqcli.exits import Exit
from hqclient.credential_files import CredentialFiles
from hqctl.asking.cms import CMS
from nannyctl.nanny_server import NannyServer

PUT = "/cms.v1.CmsService/PutBudget"
ORDER = pb.PutBudgetRequest(budget=pb.Budget(name="web"))


class CmsCaller(Processes):
    controller = CMS


class Answering(grpc.GenericRpcHandler):  # type: ignore[misc,unused-ignore]
    """Answers every call with a status (None: an empty answer), and keeps what it was asked."""

    def __init__(self, code: grpc.StatusCode | None) -> None:
        self.code = code
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def service(self, call: Any) -> Any:
        self.asked.append((call.method, dict(call.invocation_metadata)))
        return grpc.unary_unary_rpc_method_handler(self._answer)

    def _answer(self, request: bytes, context: Any) -> bytes:
        if self.code is not None:
            context.abort(self.code, "not now")
        return b""


class Servers:
    """Servers of this process; they end with the test."""

    def __init__(self) -> None:
        self.running: list[grpc.Server] = []

    def answer(self, code: grpc.StatusCode | None = None) -> tuple[str, Answering]:
        handler = Answering(code)
        server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[handler])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.running.append(server)
        return f"127.0.0.1:{port}", handler


@pytest.fixture
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    for one in made.running:
        one.stop(None).wait()


@pytest.fixture
def closed_port() -> Iterator[str]:
    with socket.socket() as bound:  # bound, but it does not listen: connections are refused
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def cms(*addresses: str, **files: str) -> CmsCaller:
    return CmsCaller(addresses, 5.0, CredentialFiles(**files))


def end(processes: Processes, method: str, request: Any, *, writing: bool) -> int:
    with pytest.raises(SystemExit) as left:
        processes.result(processes.call(method, request), writing=writing)
    assert isinstance(left.value.code, int)
    return left.value.code


def test_the_next_process_is_asked_with_the_same_id(servers: Servers, closed_port: str) -> None:
    (first, away), (second, answering) = servers.answer(grpc.StatusCode.UNAVAILABLE), servers.answer()
    caller = cms(closed_port, first, second)
    answer = caller.result(caller.call("PutBudget", ORDER), writing=True)
    assert isinstance(answer, pb.PutBudgetResponse)
    [(asked, at_first)], [(again, at_second)] = away.asked, answering.asked
    assert asked == again == PUT
    assert at_first["x-request-id"] == at_second["x-request-id"] != ""


def test_errors_that_no_other_process_would_change_are_final(servers: Servers) -> None:
    (first, _), (second, other) = servers.answer(grpc.StatusCode.NOT_FOUND), servers.answer()
    assert end(cms(first, second), "PutBudget", ORDER, writing=True) == Exit.NOT_FOUND
    assert other.asked == []


def test_an_order_whose_first_answer_was_lost_may_be_stored_whatever_the_second_says(
    servers: Servers, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, _), (second, _) = servers.answer(grpc.StatusCode.UNAVAILABLE), servers.answer(grpc.StatusCode.NOT_FOUND)
    assert end(cms(first, second), "PutBudget", ORDER, writing=True) == Exit.OUTCOME_UNKNOWN
    assert capsys.readouterr().err == "hqctl: not now; it may or may not be stored: check before you retry\n"
    assert end(cms(first, second), "ListBudgets", pb.ListBudgetsRequest(), writing=False) == Exit.NOT_FOUND


def test_a_lost_order_to_nanny_is_given_again(servers: Servers) -> None:
    first, _ = servers.answer(grpc.StatusCode.UNAVAILABLE)
    nanny = NannyServer((first,), 5.0, CredentialFiles())
    assert end(nanny, "PutBudget", ORDER, writing=True) == Exit.UNAVAILABLE


def test_a_controller_that_cannot_be_reached_is_named_with_what_to_do(
    closed_port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end(cms(closed_port), "ListBudgets", pb.ListBudgetsRequest(), writing=False) == Exit.UNAVAILABLE
    why = "nothing listens there: start it, or check the port"
    away = f"hqctl: the CMS at {closed_port} cannot be reached ({why}): name another with --cms or HQ_CMS\n"
    assert capsys.readouterr().err == away


def test_a_token_is_never_sent_to_another_machine_in_plain_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("a.b.c")
    caller = cms("cms.example.net:7271", token_file=str(token))
    assert end(caller, "ListBudgets", pb.ListBudgetsRequest(), writing=False) == Exit.NOT_ALLOWED
    assert "plain text" in capsys.readouterr().err


def test_each_call_of_one_command_has_an_id_of_its_own(servers: Servers) -> None:
    address, answering = servers.answer()
    caller = cms(address)
    for _ in range(20):
        caller.result(caller.call("GetStatus", pb.GetStatusRequest()), writing=False)
    assert len({metadata["x-request-id"] for _, metadata in answering.asked}) == 20
