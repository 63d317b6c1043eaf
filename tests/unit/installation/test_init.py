"""`hq init`: what it writes, what it leaves, and what it says. tests/acceptance/test_production.py starts all of it."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from cryptography import x509

from hq.installation import authority, tokens
from hq.installation.dividing import next_step, prefixes_of
from hq.installation.folder import InstallationFolder
from hq.installation.plan import BadPlan, InstallationPlan, read_plan
from hq.main import cli
from hqcli.exits import Exit
from hqcli.recorder import RECORDER
from hqctl.asking.cms import CMS
from hqctl.asking.cms import WALLE as HQCTL_WALLE
from nannyctl.nanny_server import NANNY
from serving.auth.policy import parse
from serving.auth.watched_files import BadSecurity
from serving.rights.rules import Role
from store.etcd_errors import Answered
from store.port import StoreError, Unavailable
from wallectl.asking import WALLE

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_HQ = {"hq-1": "10.0.0.1", "hq-2": "10.0.0.2", "hq-3": "10.0.0.3"}
_ONE = {"hq-1": "10.0.0.1"}
_PLAN = InstallationPlan("ams", _ONE, _ONE, {"node-1": "10.0.0.11"}, "hq.prod", "ops/eve")
_ASKED = ("--location", "ams", "--node", "hq-1=10.0.0.1", "--etcd-on", "hq-nodes")


def written(folder: Path, plan: InstallationPlan = _PLAN, now: datetime = _NOW) -> InstallationFolder:
    installation = InstallationFolder(folder, plan, now)
    installation.write()
    return installation


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run_init(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["init", *words])
    return done.exit_code, done.output


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    written(tmp_path)
    before = contents(tmp_path)
    again = written(tmp_path, read_plan(tmp_path)).written
    assert (again.certificates, again.tokens, again.others) == ([], [], [])
    assert contents(tmp_path) == before


def test_operators_own_settings_are_kept_and_reach_every_machine(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "config/policies/hq.yaml").write_text("roles: {}\n")
    (tmp_path / "config/hq.env").write_text("HQ_GRACE=30s\n")
    written(tmp_path)
    for machine in _ONE:
        etc = tmp_path / "machines" / machine / "etc/hq"
        assert (etc / "policy.yaml").read_text() == "roles: {}\n"
        assert (etc / "hq.env").read_text().endswith("\nHQ_GRACE=30s\n")


def test_only_the_owner_reads_the_folder_and_no_key_of_a_ca_leaves_it(tmp_path: Path) -> None:
    written(tmp_path / "ams")
    assert (tmp_path / "ams").stat().st_mode & 0o777 == 0o700
    modes = {path.stat().st_mode & 0o777 for path in contents(tmp_path)}
    assert modes == {0o600, 0o700}
    secret = {path.read_bytes() for path in (tmp_path / "ams/secret").glob("*.key") if path.name != "session.key"}
    assert len(secret) == 4
    assert not secret & set(contents(tmp_path / "ams/machines").values())


def test_each_ca_vouches_only_for_certificates_of_its_own_kind(tmp_path: Path) -> None:
    written(tmp_path)
    cas = {name: x509.load_pem_x509_certificate((tmp_path / f"secret/{name}-ca.crt").read_bytes()) for name in
           ("server", "client", "etcd")}  # fmt: skip
    assert len({ca.public_key().public_numbers() for ca in cas.values()}) == 3  # type: ignore[union-attr]
    for file, name in (("hq-1/etc/hq/tls", "server"), ("node-1/etc/hq/client", "client"), ("hq-1/etc/hq/etcd", "etcd")):
        held = x509.load_pem_x509_certificate((tmp_path / "machines" / f"{file}.crt").read_bytes())
        held.verify_directly_issued_by(cas[name])
        path = tmp_path / "machines" / file
        ssl.create_default_context().load_cert_chain(path.with_suffix(".crt"), path.with_suffix(".key"))
    agent = x509.load_pem_x509_certificate((tmp_path / "machines/node-1/etc/hq/client.crt").read_bytes())
    names = agent.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["spiffe://hq.prod/agent/node-1"]


def test_every_file_that_settings_name_is_there(tmp_path: Path) -> None:
    written(tmp_path)
    for machine in (tmp_path / "machines").iterdir():
        for file in (*machine.rglob("*.env"), *machine.rglob("etcd.yaml")):
            folder = file.parent
            for named in re.findall(r"[=\s](/etc/\S+)", re.sub(r"^#.*", "", file.read_text(), flags=re.MULTILINE)):
                assert named.startswith(f"/etc/{folder.name}/"), (file, named)
                assert (machine / named.lstrip("/")).exists() or named.endswith("/stop"), (file, named)
            assert "$" not in file.read_text()
            assert ".example" not in re.sub(r"^#.*", "", file.read_text(), flags=re.MULTILINE)


def test_the_admin_of_the_plan_is_the_admin_of_every_policy(tmp_path: Path) -> None:
    written(tmp_path)
    for path in (tmp_path / "config/policies").iterdir():
        assert Role.ADMIN in parse(path.read_bytes()).scopes("ops/eve", None), path
        assert "hq.example" not in path.read_text()
        assert "spiffe://hq.prod" in path.read_text() or path.name == "hq-federated.yaml"


def test_only_certificates_and_tokens_that_are_due_are_renewed_and_keys_stay(tmp_path: Path) -> None:
    written(tmp_path)
    keys = {path: body for path, body in contents(tmp_path).items() if path.suffix == ".key"}
    fresh = InstallationFolder(tmp_path, _PLAN, _NOW + authority.VALID - authority.DUE - timedelta(hours=1))
    fresh.renew(authority.DUE, tokens.VALID)
    assert fresh.written.certificates == []
    assert len(fresh.written.tokens) == 2
    due = InstallationFolder(tmp_path, _PLAN, _NOW + authority.VALID - authority.DUE + timedelta(hours=1))
    due.renew(authority.DUE, tokens.DUE)
    assert set(due.written.certificates) == {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.crt") if not path.stem.endswith("-ca")
    }
    assert {path: path.read_bytes() for path in keys} == keys


def test_cas_and_the_signing_key_of_an_earlier_installation_are_kept(tmp_path: Path) -> None:
    written(tmp_path / "before")
    kept = tmp_path / "ams/secret"
    shutil.copytree(tmp_path / "before/secret", kept)
    written(tmp_path / "ams")
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "before/secret").iterdir()
    }


def test_an_added_machine_gets_its_folder_and_is_named_to_the_others(tmp_path: Path) -> None:
    folder = str(tmp_path / "ams")
    assert run_init(folder, *_ASKED)[0] == 0
    assert run_init("add-node", folder, "hq-2=10.0.0.2", "--hq")[0] == 0
    assert run_init("add-node", folder, "node-7=10.0.0.77")[0] == 0
    plan = read_plan(tmp_path / "ams")
    assert (dict(plan.etcd), [*plan.hq], [*plan.nodes]) == ({"hq-1": "10.0.0.1"}, ["hq-1", "hq-2"], ["node-7"])
    machines = tmp_path / "ams/machines"
    assert "HQ_SERVER=10.0.0.1:7072,10.0.0.2:7072" in (machines / "node-7/etc/hq/instancectl.env").read_text()
    assert not (machines / "hq-2/etc/hq-etcd").exists()
    assert [path.name for path in (machines / "node-7/etc").iterdir()] == ["hq"]


_JOINING = ("--location", "fra", "--node", "fra-1=10.0.1.1", "--etcd-on", "hq-nodes")


def test_a_second_location_has_the_same_admins_and_each_federates_both(tmp_path: Path) -> None:
    ams, fra = tmp_path / "ams", tmp_path / "fra"
    assert run_init(str(ams), *_ASKED, "--trust-domain", "hq.prod", "--admin", "ops/eve")[0] == 0
    assert run_init(str(fra), *_JOINING, "--join", str(ams))[0] == 0
    assert (read_plan(fra).trust_domain, read_plan(fra).admin) == ("hq.prod", "ops/eve")
    shared = {
        path.name
        for path in (ams / "secret").iterdir()
        if path.read_bytes() == (fra / "secret" / path.name).read_bytes()
    }
    assert shared == {f"{name}-ca.{end}" for name in ("server", "client") for end in ("key", "crt")} | {
        "token.key",
        "jwks.json",
    }
    for folder, machine in ((ams, "hq-1"), (fra, "fra-1")):
        made = yaml.safe_load((folder / "machines" / machine / "etc/hq-federated/federated.yaml").read_text())
        assert made["locations"] == {"ams": {"replicas": ["10.0.0.1:7071"]}, "fra": {"replicas": ["10.0.1.1:7071"]}}
    before = [contents(folder / part) for folder in (ams, fra) for part in ("secret", "config")]
    assert run_init("add-node", str(fra), "node-9=10.0.1.9")[0] == 0
    assert run_init(str(fra), *_JOINING, "--join", str(ams))[0] == 0  # again
    assert [contents(folder / part) for folder in (ams, fra) for part in ("secret", "config")] == before
    assert [*read_plan(fra).nodes] == ["node-9"]
    text = (fra / "installation.yaml").read_text()
    (fra / "installation.yaml").write_text(text.replace("agents: fra/agent\n", ""))  # as before 0.2.0
    assert run_init(str(fra), *_JOINING, "--join", str(ams))[0] == 0
    assert read_plan(fra).agents == "agent"


def test_an_agent_has_rights_only_in_its_own_location_though_one_ca_signs_for_both(tmp_path: Path) -> None:
    ams, fra = tmp_path / "ams", tmp_path / "fra"
    assert run_init(str(ams), *_ASKED)[0] == 0
    assert run_init(str(fra), *_JOINING, "--join", str(ams))[0] == 0
    for number, folder in enumerate((ams, fra)):  # each has a node of this name
        assert run_init("add-node", str(folder), f"node-1=10.0.{number}.41")[0] == 0
    for folder, other in ((ams, fra), (fra, ams)):
        own, foreign = (_uri_of(one / "machines/node-1/etc/hq/client.crt") for one in (folder, other))
        for name in ("hq", "hq-cms", "hq-walle"):
            policy = parse((folder / f"config/policies/{name}.yaml").read_bytes())
            assert policy.scopes(own, None)[Role.AGENT][0].covers("", "node-1"), (folder, name)
            assert policy.scopes(foreign, None) == {}, (folder, name)


def _uri_of(certificate: Path) -> str:
    found = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return str(names.get_values_for_type(x509.UniformResourceIdentifier)[0])


@pytest.mark.parametrize(
    ("words", "federated", "said"),
    [
        (("--location", "ams", *_JOINING[2:]), "", "--location ams: is the name of the one in"),
        ((*_JOINING[:3], "fra-1=10.0.0.1", *_JOINING[4:]), "", "10.0.0.1: is a machine of"),
        (_JOINING, "locations: [ams]", "federated.yaml: locations: expected a mapping"),
        (_JOINING, "locations: {ams: {replicas: [10.0.0.1:7071]}}", "add below `locations`: fra: {replicas: [10.0.1.1"),
    ],
)
def test_a_location_that_cannot_be_joined_is_refused(
    tmp_path: Path, words: tuple[str, ...], federated: str, said: str
) -> None:
    assert run_init(str(tmp_path / "ams"), *_ASKED)[0] == 0
    if federated:
        (tmp_path / "ams/config/federated.yaml").write_text(federated)
    code, output = run_init(str(tmp_path / "fra"), *words, "--join", str(tmp_path / "ams"))
    assert (code, said in output) == (1, True), output
    assert not (tmp_path / "fra/installation.yaml").exists()


def test_a_machine_removed_from_the_plan_loses_its_folder(tmp_path: Path) -> None:
    written(tmp_path)
    text = (
        (tmp_path / "installation.yaml").read_text().replace("  node-1: 10.0.0.11\n", "").replace("nodes:", "nodes: {}")
    )
    (tmp_path / "installation.yaml").write_text(text)
    assert run_init(str(tmp_path))[0] == 0
    assert {path.name for path in (tmp_path / "machines").iterdir()} == set(_ONE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--node", "hq-1=10.0.0.1", "--etcd-on", "hq-nodes"), "--location: name the location"),
        (("--location", "ams", "--etcd-on", "hq-nodes"), "hq: there is no machine; name each as hq-1=10.0.0.1"),
        (("--location", "ams", "--node", "hq-1=10.0.0.1"), "name 3 or 5 machines of etcd with --etcd"),
        (("--location", "ams", "--node", "hq-1", "--etcd-on", "hq-nodes"), "--node hq-1: '' is not an IPv4 address"),
        (
            ("--location", "ams", "--node", "hq 1=10.0.0.1", "--etcd-on", "hq-nodes"),
            "'hq 1': is not the name of a machine",
        ),
        (("--location", "A/B", "--node", "hq-1=10.0.0.1", "--etcd-on", "hq-nodes"), "location 'A/B': write lower case"),
        ((*_ASKED[:2], "--node", "a=10.0.0.1", "--node", "b=10.0.0.2", "--etcd-on", "hq-nodes"), "etcd: has 2 members"),
        ((*_ASKED[:2], "--node", "a=10.0.0.1", "--etcd", "b=10.0.0.1"), "two machines have one address"),
    ],
)
def test_impossible_settings_are_refused_by_field_and_nothing_is_written(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    code, output = run_init(str(tmp_path / "ams"), *words)
    assert code == 1
    assert said in output
    assert not (tmp_path / "ams").exists()


def test_an_installation_is_not_changed_by_other_options(tmp_path: Path) -> None:
    assert run_init(str(tmp_path), *_ASKED)[0] == 0
    assert run_init(str(tmp_path), *_ASKED)[0] == 0
    for other in (("--location", "fra", *_ASKED[2:]), (*_ASKED[:4], "--node", "b=10.0.0.2", "--etcd", "hq-1=10.0.0.1")):
        code, output = run_init(str(tmp_path), *other)
        assert code == 1
        assert "installation.yaml says otherwise: change it there" in output


@pytest.mark.parametrize(
    ("words", "machine"),
    [(("--node", "hq-4=10.0.0.4"), "hq-4=10.0.0.4"), (("--etcd", "e=10.0.0.4"), "NAME=IP"), (_ASKED[4:], "NAME=IP")],
)
def test_machines_for_an_existing_folder_are_refused_with_the_command_to_add_them(
    tmp_path: Path, words: tuple[str, ...], machine: str
) -> None:
    folder = tmp_path / "ams"
    assert run_init(str(folder), *_ASKED)[0] == 0
    said = (
        f"hq: {folder} exists: --node and --etcd count only when it is first written. "
        f"A machine more: hq init add-node {folder} {machine} --hq\n"
    )
    assert run_init(str(folder), *words) == (1, said)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("revoked.yaml", "subject: [ops/eve]", "subject: unknown key; did you mean subjects?"),
        ("revoked.yaml", "subjects: [", "is not valid YAML"),
        ("policies/hq-cms.yaml", "role: {}", "role: unknown setting"),
        ("sites.yaml", "hosts: {n: {rak: r1}}", "hosts.n.rak: unknown setting; known settings: dc, rack"),
        ("sites.yaml", "hosts: {}\nhosts: {}", "is not valid YAML: duplicate key, line 1"),
        ("walle.yaml", "automation: {max_dead_hosts: [10]}", "automation.max_dead_hosts: "),
        ("walle.yaml", "redfish: [{match: 10.7.0.0/16, usr: hq}]", "redfish[0].usr: unknown setting"),
        ("federated.yaml", "locations: {ams: {replica: [a:1]}}", "locations.ams.replica: unknown setting; "),
    ],
)
def test_a_setting_that_servers_would_refuse_is_refused_before_anything_is_written(
    tmp_path: Path, file: str, text: str, said: str
) -> None:
    folder, beside = tmp_path / "ams", tmp_path / "fra"
    assert run_init(str(folder), *_ASKED)[0] == 0
    (folder / "config" / file).write_text(text)
    before = contents(tmp_path)
    for words in (
        (str(folder),),
        ("add-node", str(folder), "n=10.0.0.9"),
        (str(beside), *_JOINING, "--join", str(folder)),
    ):
        code, output = run_init(*words)
        assert (code, output.startswith(f"hq: {folder}/config/{file}: ")) == (1, True), output
        assert said in output
        assert output.endswith(" Nothing was written.\n")
    assert contents(tmp_path) == before


def test_secrets_that_are_on_walles_machines_are_not_looked_for_here(tmp_path: Path) -> None:
    folder = tmp_path / "ams"
    assert run_init(str(folder), *_ASKED)[0] == 0
    (folder / "config/walle.yaml").write_text(
        "redfish: [{match: 10.7.0.0/16, user: hq, password_file: bmc.password, ca_file: bmc-ca.crt}]\n"
    )
    assert run_init(str(folder))[0] == 0


def test_a_machine_that_is_off_does_not_stop_the_copies_to_the_others(tmp_path: Path) -> None:
    written(tmp_path / "ams")
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        f"#!/bin/sh\ncat >/dev/null\necho $* >>{tmp_path}/asked\ncase $* in *root@10.0.0.1\\ *) exit 255;; esac\n"
    )
    ssh.chmod(0o755)
    environment = {"PATH": f"{ssh.parent}:/usr/bin:/bin"}
    done = subprocess.run(tmp_path / "ams/distribute", env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "hq-1: failed\n")
    assert done.stdout.splitlines() == ["hq-1: 10.0.0.1", "node-1: 10.0.0.11"]
    asked = (tmp_path / "asked").read_text()
    assert asked.count("-o ConnectTimeout=10") == asked.count("root@") == 2


def test_a_key_that_does_not_match_its_certificate_is_named(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "secret/etcd-ca.key").write_bytes((tmp_path / "secret/client-ca.key").read_bytes())
    code, output = run_init(str(tmp_path))
    assert code == 1
    assert "secret/etcd-ca.crt: does not belong to etcd-ca.key: put the right files of a backup there" in output


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_understands_the_timer_that_renews(tmp_path: Path) -> None:
    written(tmp_path)
    words = ["systemd-analyze", "verify", *map(str, (tmp_path / "units").iterdir())]
    assert subprocess.run(words, capture_output=True, text=True, check=False).stderr == ""


def test_the_operators_commands_find_every_server_and_their_token(tmp_path: Path) -> None:
    written(tmp_path / "ams")
    set_here = dict(re.findall(r"(\w+)=(\S+)", (tmp_path / "ams" / "operator.env").read_text()))
    for option, port in ((CMS, 7271), (HQCTL_WALLE, 7471), (NANNY, 7371), (WALLE, 7471), (RECORDER, 7871)):
        assert set_here[option.variable] == f"10.0.0.1:{port}"
        assert Path(set_here[f"{option.prefix}CA"]).is_file()
        assert Path(set_here[f"{option.prefix}TOKEN_FILE"]).is_file()
    assert set_here["HQ_SERVER"] == "10.0.0.1:7071"


def test_the_configuration_of_prometheus_has_every_server(tmp_path: Path) -> None:
    written(tmp_path, InstallationPlan("ams", _HQ, _HQ))
    config = yaml.safe_load((tmp_path / "prometheus/installation.yml").read_text())
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    targets = jobs["controllers"]["static_configs"][0]["targets"]
    assert targets[:3] == ["10.0.0.1:7280", "10.0.0.2:7280", "10.0.0.3:7280"]
    assert len(jobs["instances"]["http_sd_configs"]) == 3
    named = {*config["rule_files"], *jobs["hq"]["tls_config"].values(), "prometheus.token"}
    assert {path.name for path in (tmp_path / "prometheus").iterdir()} == {*named, "installation.yml"}


def test_users_of_etcd_are_the_identities_of_the_controllers(tmp_path: Path) -> None:
    written(tmp_path)
    wanted = {"cms": "/cms/v1/", "nanny": "/nanny/v1/", "wall-e": "/walle/v1/"}
    assert prefixes_of(tmp_path, _PLAN) == {f"spiffe://hq.prod/{name}": prefix for name, prefix in wanted.items()}
    with pytest.raises(BadPlan, match="is too long for a user of etcd"):
        prefixes_of(tmp_path, replace(_PLAN, trust_domain=f"{'a' * 56}.prod"))


@pytest.mark.parametrize(
    ("setting", "prefix"),
    [
        ("NANNY_PREFIX=", "/nanny/v1/"),
        ('NANNY_PREFIX=""', "/nanny/v1/"),
        ("NANNY_PREFIX=/own", "/own/"),
        ("NANNY_PREFIX='/own/'", "/own/"),
        (' NANNY_PREFIX = "/own/" \n#NANNY_PREFIX=/other/\n;NANNY_PREFIX=/other/', "/own/"),
        ("NANNY_PREFIX=/first/\nNANNY_PREFIX=/own/", "/own/"),
        ("NANNY_PREFIX=/first/\nNANNY_PREFIX=", "/nanny/v1/"),
    ],
)
def test_a_server_has_access_in_etcd_to_the_prefix_of_its_settings(tmp_path: Path, setting: str, prefix: str) -> None:
    written(tmp_path)
    (tmp_path / "config/nanny.env").write_text(f"{setting}\n")
    written(tmp_path, read_plan(tmp_path))
    assert prefixes_of(tmp_path, _PLAN)["spiffe://hq.prod/nanny"] == prefix


@pytest.mark.parametrize("setting", ["/", "//", "'/own/"])
def test_a_prefix_of_all_records_or_with_an_open_quote_is_refused(tmp_path: Path, setting: str) -> None:
    written(tmp_path)
    (tmp_path / "config/nanny.env").write_text(f"NANNY_PREFIX={setting}\n")
    written(tmp_path, read_plan(tmp_path))
    with pytest.raises(BadPlan, match=r"nanny\.env: NANNY_PREFIX"):
        prefixes_of(tmp_path, _PLAN)


def test_an_etcd_that_does_not_run_is_reported_with_what_to_do(tmp_path: Path) -> None:
    here = {"hq-1": "127.0.0.77"}
    written(tmp_path, replace(_PLAN, hq=here, etcd=here))
    code, said = run_init("divide-etcd", str(tmp_path))
    assert code == Exit.UNAVAILABLE
    assert re.search(r"etcd was not divided: etcd: cannot connect to .*: start etcd, run `hq init", said), said


@pytest.mark.parametrize(
    ("error", "code", "step"),
    [
        (Unavailable("etcd: etcdserver: no leader"), Exit.UNAVAILABLE, "start etcd"),
        (Answered("etcd: etcdserver: permission denied"), Exit.NOT_ALLOWED, "machines/hq-1/etc/hq/etcd.crt must be"),
        (Answered("etcd: etcdserver: user name not found"), Exit.NOT_ALLOWED, "spiffe://hq.prod/hq a user with"),
        (Unavailable("etcd: cannot connect: CERTIFICATE_VERIFY_FAILED"), Exit.NOT_ALLOWED, "etcd.crt must be"),
        (BadSecurity("etcd.key: cannot be read"), Exit.NOT_ALLOWED, "run `hq init ams`"),
        (Answered("etcd: etcdserver: root user does not exist"), Exit.REFUSED, "do what etcd says"),
    ],
)
def test_only_an_etcd_that_does_not_answer_is_waited_for(
    error: StoreError | BadSecurity, code: Exit, step: str
) -> None:
    got, said = next_step(error, Path("ams"), _PLAN)
    assert got == code
    assert step in said
    assert ("start etcd" in said) == (code == Exit.UNAVAILABLE)
