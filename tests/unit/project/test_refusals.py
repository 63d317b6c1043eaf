"""Every command that calls a server which refuses: the exit code of the contract, and a message that helps."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

import click
import grpc
import pytest
from click.testing import CliRunner

from hqcli.exits import Exit
from serving.error_statuses import grpc_code, grpc_trailers, status_of
from serving.errors import PermissionDenied, ServiceError, Unauthenticated
from tests.unit.project.test_command_line import cli, named
from tests.unit.project.test_messages import GOES_ON, INTERNALS, calling, words_of, workplace

__all__ = ["workplace"]
PROGRAMS: Final = ("cms", "hqctl", "nanny", "walle")
WHY: Final = "ada is not authorized to do that: requires the role admin"
# Refused whatever the command is: what a script may rely on.
CODES: Final = {
    "INVALID_ARGUMENT": {Exit.REFUSED},
    "FAILED_PRECONDITION": {Exit.REFUSED},
    "NOT_FOUND": {Exit.NOT_FOUND},
    "ABORTED": {Exit.CONFLICT},
    "ALREADY_EXISTS": {Exit.CONFLICT},
    "UNAUTHENTICATED": {Exit.NOT_ALLOWED},
    "PERMISSION_DENIED": {Exit.NOT_ALLOWED},
    "INTERNAL": {Exit.REFUSED, Exit.OUTCOME_UNKNOWN},  # 6 of writes
}
TRIED_AGAIN: Final = ("ABORTED", "ALREADY_EXISTS", "INTERNAL")  # by who follows
OTHERWISE: Final = {
    "hqctl diff": "1 is a difference, as diff and kubectl have it, so who is refused ends with 2",
    "hqctl status": "it describes failures: 5 where no server answers as HQ does",
}

pytestmark = pytest.mark.long  # each command of each program, ten times


class RefusingServer(grpc.GenericRpcHandler):
    """Refuses every call, whatever its method and request."""

    error: ServiceError

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        return grpc.stream_stream_rpc_method_handler(self._refuse)

    def _refuse(self, _: Any, context: grpc.ServicerContext) -> NoReturn:
        status = status_of(self.error)
        context.set_trailing_metadata(grpc_trailers(self.error, status))
        context.abort(grpc_code(self.error), status.message)
        raise AssertionError("unreachable: abort raises")


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[RefusingServer, str]]:
    handler = RefusingServer()
    made = grpc.server(ThreadPoolExecutor(4), handlers=[handler])
    port = made.add_insecure_port("127.0.0.1:0")
    made.start()
    yield handler, f"127.0.0.1:{port}"
    made.stop(None)


def run(path: tuple[str, ...], command: click.Command, flags: list[click.Parameter], address: str) -> tuple[int, str]:
    words = words_of(path, command, {}, "", "")
    for flag in flags:
        words += [flag.opts[0], f"x={address}" if "=" in str(flag.metavar) else address]
    answer = CliRunner().invoke(cli(path[0]), words, env={"HQ_CONFIG": "", "NANNY_CONFIG": ""}, prog_name=path[0])
    return answer.exit_code, answer.output.strip() or repr(answer.exception)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("code", CODES)
def test_a_refused_call_ends_every_command_with_the_exit_code_of_the_contract(
    server: tuple[RefusingServer, str], program: str, code: str
) -> None:
    handler, address = server
    made: Any = type("Refusal", (ServiceError,), {"code": code, "reason": "REFUSED_BY_A_TEST"})
    handler.error = made(WHY)
    faults = []
    for path, command, flags in calling(program):
        name = named(path)
        if name in OTHERWISE or (code in TRIED_AGAIN and GOES_ON.fullmatch(name)):
            continue
        found, said = run(path, command, flags, address)
        if found not in CODES[code] or INTERNALS.search(said):
            faults.append(f"{name}: {found}: {said}")
    assert "\n".join(faults) == ""


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("error", "next_step"),
    [
        (PermissionDenied(WHY), "`hqctl auth matrix --server {}` lists what you may call"),
        (Unauthenticated("not authenticated: send a token"), "t {}: give --token-file, or --cert and --key"),
    ],
)
def test_a_missing_right_is_named_with_its_server_and_the_next_step(
    server: tuple[RefusingServer, str], program: str, error: ServiceError, next_step: str
) -> None:
    handler, address = server
    handler.error = error
    faults = []
    for path, command, flags in calling(program):
        _, said = run(path, command, flags, address)
        lacks = [part for part in (str(error), address, next_step.format(address)) if part not in said]
        if lacks or INTERNALS.search(said):
            faults.append(f"{named(path)}: lacks {lacks}: {said}")
    assert "\n".join(faults) == ""
