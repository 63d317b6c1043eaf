"""Audiences of tokens: each server has a name of its own, and takes only tokens that list it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from cms.main import serve as cms_serve
from console.main import serve as console_serve
from federated.main import cli as federated_serve
from gateways.consul.command import consul
from gateways.xds.command import xds
from hq.main import serve as hq_serve
from nanny.serve import serve as nanny_serve
from serving.auth.audiences import audiences_of
from serving.auth.bearer_tokens import Demands, Tokens, parse_jwks
from serving.clock import SystemClock
from serving.errors import Unauthenticated
from tests.support.token_issuer import AUDIENCES, ISSUER, Issuer
from walle.serve import serve as walle_serve

SERVERS: dict[str, tuple[click.Command, ...]] = {
    "hq": (hq_serve,),
    "federated": (federated_serve,),
    "cms": (cms_serve,),
    "nanny": (nanny_serve,),
    "walle": (walle_serve,),
    "gateway": (xds, consul),
}


def flags_of(command: click.Command) -> dict[str, Any]:
    return {str(param.name): param.default for param in command.params}


def refusal(issuer: Issuer, demands: Demands, audience: Any) -> str:
    tokens = Tokens(parse_jwks([issuer.jwks.read_bytes()]), demands, SystemClock())
    try:
        tokens.identity(issuer.token("ann", aud=audience))
    except Unauthenticated as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", SERVERS)
def test_each_server_takes_tokens_that_list_its_own_name_and_no_others(tmp_path: Path, name: str) -> None:
    issuer = Issuer(tmp_path)
    for command in SERVERS[name]:
        demands = Demands(flags_of(command)["audience"], ISSUER, 30.0)
        accepted = {other for other in AUDIENCES if not refusal(issuer, demands, other)}
        assert accepted == {name}
        assert not refusal(issuer, demands, [other for other in AUDIENCES if other != "hq"] + ["hq"])


def test_every_server_but_hq_has_the_flag_for_the_old_common_audience() -> None:
    with_flag = {name for name, commands in SERVERS.items() for c in commands if "common_audience" in flags_of(c)}
    assert with_flag == set(SERVERS) - {"hq"}
    assert "common_audience" in flags_of(console_serve)


def test_the_old_common_audience_is_refused_with_what_to_do_unless_the_flag_accepts_it(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    assert refusal(issuer, Demands("cms", ISSUER, 30.0), "hq") == (
        "the token is for hq, and this server is cms: get one that lists hq and cms (hqctl token sign --audience "
        "hq,cms); for one release --common-audience at the server accepts it"
    )
    accepting = Demands("cms", ISSUER, 30.0, common_audience=True)
    assert not refusal(issuer, accepting, "hq")
    assert not refusal(issuer, accepting, ["cms"])
    assert "--common-audience" not in refusal(issuer, accepting, "walle")


@pytest.mark.parametrize("claim", ["", [], ["a\nb"], 5, {"cms": 1}, ["cms", 5], [["cms"]], "cms ", "CMS", "cms,hq"])
def test_a_malformed_audience_claim_is_for_no_server(tmp_path: Path, claim: Any) -> None:
    issuer = Issuer(tmp_path)
    assert refusal(issuer, Demands("cms", ISSUER, 30.0), claim)
    assert "cms" not in audiences_of(issuer.token("ann", aud=claim))


@pytest.mark.parametrize("token", ["", "a.b.c", "opaque", "a.W10.c", "a." + "W" * 9_000 + ".c"])
def test_a_token_that_is_not_a_jwt_is_for_no_server(token: str) -> None:
    assert audiences_of(token) == frozenset()
