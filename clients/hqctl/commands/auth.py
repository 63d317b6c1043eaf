"""auth: what an identity may call at a server, by which grant, and why not."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

import click

from hqcli.exits import Exit
from hqcli.terminal import print_table
from hqctl.asking.session import HqctlSession, complain, with_session

_EXPLAIN: Final = "/access.v1.AccessService/Explain"
_about = (
    click.option("--identity", default="", help="Of whom; default: your own. Others' are for operators and admins."),
    click.option("--service", default="", help="About this service."),
    click.option("--node", default="", help="About this node."),
)


@click.group()
def auth() -> None:
    """Show what an identity may call at a server: HQ, or whichever --server names (CMS, Nanny, Wall-E, gateway)."""


@auth.command(short_help="Show which rule and grant decide about a call, and why not.")
@click.argument("method")
@_about[0]
@_about[1]
@_about[2]
@with_session
def explain(session: HqctlSession, method: str, identity: str, service: str, node: str) -> None:
    """Show which rule and grant decide about a call (or all whose name contains METHOD), and why not.

    Exits with 7 if one of them would be denied.
    """
    calls = _fetch_access(session, {"method": method, "identity": identity, "service": service, "node": node})
    if not calls:
        complain(f"the server has no call named {method}: `hqctl auth matrix` lists them")
        sys.exit(Exit.USAGE)
    for one in calls:
        verdict = "allowed" if one["let_in"] else f"denied: {one['why']}"
        click.echo(f"{one['method']}: {verdict}")
        click.echo(f"  rule: {one['rule']}, for {', '.join(one['roles'])}; reaches: {one['reach']}")
        for grant in one["grants"]:
            covers = "covers it" if grant["covers"] else "does not cover it"
            click.echo(f"  grant: {grant['role']}, {grant['scope'] or 'without a scope'}: {covers}")
    sys.exit(Exit.OK if all(one["let_in"] for one in calls) else Exit.NOT_ALLOWED)


@auth.command(short_help="List all calls of a server: their rules, what they reach, whether you may.")
@_about[0]
@_about[1]
@_about[2]
@with_session
def matrix(session: HqctlSession, identity: str, service: str, node: str) -> None:
    """List all calls of a server: their rules, what they reach, and whether the identity may."""
    calls = _fetch_access(session, {"identity": identity, "service": service, "node": node})
    rows = [[one["method"], one["rule"], one["reach"], "yes" if one["let_in"] else one["why"]] for one in calls]
    print_table(("CALL", "RULE", "REACHES", "ALLOWED"), rows)


def _fetch_access(session: HqctlSession, about: dict[str, str]) -> list[dict[str, Any]]:
    import grpc
    from google.protobuf import json_format, struct_pb2

    from hqclient.credential_files import BadCredentials
    from hqclient.credentials import Credentials
    from hqclient.errors import HqApiError, decode

    async def ask() -> struct_pb2.Struct:
        request = struct_pb2.Struct()
        request.update({name: value for name, value in about.items() if value})
        credentials = Credentials(session.credentials)
        async with credentials.channel(session.servers[0]) as channel:
            call = channel.unary_unary(
                _EXPLAIN,
                request_serializer=struct_pb2.Struct.SerializeToString,
                response_deserializer=struct_pb2.Struct.FromString,
            )
            try:
                answer: struct_pb2.Struct = await call(
                    request, metadata=credentials.metadata(), timeout=session.timeout_s
                )
            except grpc.aio.AioRpcError as error:
                raise await credentials.explain(decode(error, session.servers[0])) from None
            return answer

    try:
        answer = asyncio.run(ask())
    except BadCredentials as error:
        complain(str(error))
    except HqApiError as error:
        sys.exit(session.tell(error, writing=False))
    else:
        found: list[dict[str, Any]] = json_format.MessageToDict(answer).get("calls", [])
        return found
    sys.exit(Exit.NOT_ALLOWED)
