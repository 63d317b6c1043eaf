"""Configuration of 0.1.0 that this version no longer accepts is refused with how to write it now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from serving.auth.bearer_tokens import Demands
from serving.auth.policy import parse
from serving.auth.watched_files import BadSecurity
from serving.errors import Unauthenticated
from tests.unit.project.test_command_line import cli
from walle.process.config import load
from walle.process.fields import BadConfig

TRANSPORT: Final = "--transport (HQ_TRANSPORT) is gone: every address answers all protocols, and --grpc-mtls"
SERVERLESS: Final = "is gone: a roll-out is an order to a Nanny server: run `nanny serve`, once `nanny service create"
FLAGS: Final[tuple[tuple[str, dict[str, str], str], ...]] = (
    ("hq serve --etcd 127.0.0.1:1 --transport grpcio", {}, TRANSPORT),
    ("hq serve --etcd 127.0.0.1:1", {"HQ_TRANSPORT": "grpcio"}, TRANSPORT),
    ("hq dev", {"HQ_TRANSPORT": "grpcio"}, TRANSPORT),
    ("hq-federated --config x", {"HQ_FEDERATED_TRANSPORT": "grpcio"}, "--transport (HQ_FEDERATED_TRANSPORT) is gone"),
    ("hq serve --etcd 127.0.0.1:1 --min-ping-interval 1s", {}, "(HQ_MIN_PING_INTERVAL) is gone: pings have a budget"),
    ("cms serve", {"CMS_MIN_PING_INTERVAL": "1s"}, "(CMS_MIN_PING_INTERVAL) is gone: pings have a budget"),
    ("hqctl token --key k --subject a", {}, "write `hqctl token sign`, and with --audience the servers that it is for"),
    ("hqctl token --audience hq --key k", {}, "write `hqctl token sign`"),
    ("walle hosts get h1 --json", {}, "--json is gone: write -o json"),
    ("walle projects get p1 --json", {}, "--json is gone: write -o json"),
    ("nanny activate r2 --service web", {}, f"--service {SERVERLESS}"),
    ("nanny activate r2 --service web --partial", {}, "is gone: a roll-out is an order to a Nanny server"),
    ("nanny activate r2 --at-once", {}, f"--at-once {SERVERLESS}"),
    ("nanny rollback --from r2 --to r1 --service web", {}, "is gone: a roll-out is an order to a Nanny server"),
    ("nanny activate r2 --timeout-ready 5m", {}, f"--timeout-ready {SERVERLESS}"),
    ("nanny status --service web", {}, f"--service {SERVERLESS}"),
)


@pytest.mark.parametrize(("words", "environment", "told"), FLAGS)
def test_a_removed_flag_is_refused_with_what_to_write_instead(
    words: str, environment: dict[str, str], told: str
) -> None:
    program, *rest = words.split()
    answer = CliRunner().invoke(cli(program), rest, env=environment)
    assert answer.exit_code == 2, answer.output
    assert told in " ".join(answer.output.split())


def test_the_table_of_changes_has_every_removed_flag() -> None:
    text = (Path(__file__).resolve().parents[3] / "CHANGELOG.md").read_text()
    table = text.partition("Flags of 0.1.0 that are gone;")[2].partition("\n\n- ")[0]
    gone = {"hqctl token --"} | {f"`{said.split()[0]}`" for _, _, said in FLAGS if said.startswith("--")}
    variables = {name for _, environment, _ in FLAGS for name in environment}
    assert [one for one in sorted(gone | variables) if one.strip("`") not in table] == []


def test_a_removed_setting_is_accepted_at_its_old_default() -> None:
    answer = CliRunner().invoke(cli("hq"), ["serve", "--etcd", ""], env={"HQ_TRANSPORT": "own"})
    assert "HQ_TRANSPORT" not in answer.output


WALLE: Final = (
    ("cms_tokens: {prod: token}", "cms_tokens: a token is sent to listed destinations only: write `cms: [{url:"),
    (
        "executors: {bmc: {type: redfish, user: root, password_file: p}}",
        "executors.bmc.password_file: an account is used at listed destinations only: write `redfish: [{match:",
    ),
    ("executors: {bmc: {type: redfish}}", "it calls management controllers, and none may be called: write `redfish:"),
    (
        'executors: {run: {type: command, argv: [ipmi, "{bmc}"]}}',
        "it calls management controllers, and none may be called: write `redfish:",
    ),
    ("executors: {run: {type: command, argv: reboot}}", "executors.run.argv: write a list of texts"),
    ("executors: {run: {type: command, argv: [a], timeout_s: soon}}", "timeout_s: 'soon' is not a number above 0"),
    (
        "executors: {dns: {type: dns, server: ns1.example.net, zone: example.net}}",
        "executors.dns.server: 'ns1.example.net' is no IP address: write that of the server",
    ),
    ("notifications: {critical: ['https://hooks.example.net/x']}", "notify"),
    ("smtp: {host: m, sender: a@b.c, user: u}", "smtp.password_file: is missing"),
)


@pytest.mark.parametrize(("text", "told"), WALLE)
def test_walle_says_how_its_file_is_written_now(tmp_path: Path, text: str, told: str) -> None:
    for name in ("token", "p"):
        (tmp_path / name).write_text("secret")
    (tmp_path / "walle.yaml").write_text(text)
    with pytest.raises(BadConfig) as refused:
        load(tmp_path / "walle.yaml")
    assert told in str(refused.value)


POLICIES: Final = (
    ("monitor: [{identities: [am], services: [web]}]", "a monitor's grant is by node: remove services"),
    ("operator: [{identities: [ops], services: [web], nodes: [n1]}]", "write two grants, one by service and one by"),
    ('uploader: [{identities: [ci], services: [web], secrets: ["shared/db"]}]', "secrets are written PROVIDER:ID/KEY"),
    ("agent: [{identities: [a], nodes: [n1]}]", "write {node} in its place"),
)


@pytest.mark.parametrize(("grants", "told"), POLICIES)
def test_a_policy_says_how_a_grant_is_written_now(grants: str, told: str) -> None:
    with pytest.raises(BadSecurity) as refused:
        parse(f"roles: {{{grants}}}".encode())
    assert told in str(refused.value)


def test_a_token_of_0_1_0_is_refused_with_how_to_sign_one_and_the_flag_that_accepts_it() -> None:
    with pytest.raises(Unauthenticated) as refused:
        Demands("cms", "hqctl", 60.0).check_audience("hq")
    assert "hqctl token sign --audience hq,cms" in str(refused.value)
    assert "for one release --common-audience at the server accepts it" in str(refused.value)
    Demands("cms", "hqctl", 60.0, common_audience=True).check_audience(json.loads('["hq"]'))
