"""The commands `hq init DIR`, `hq init add-node` and `hq init renew`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from hq.installation import authority, tokens
from hq.installation.authority import BadKeyFile
from hq.installation.dividing import divide, next_step, prefixes_of
from hq.installation.folder import InstallationFolder, check_config
from hq.installation.joining import join_locations
from hq.installation.plan import AGENTS, FILE, BadPlan, InstallationPlan, parse_machines, read_plan
from serving.auth.watched_files import BadSecurity
from store.port import StoreError

_folder = click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))


class _CreateUnlessNamed(click.Group):
    """`hq init DIR` is short for `hq init create DIR`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args.insert(0, "create")
        return super().parse_args(ctx, args)


@click.group(
    "init",
    cls=_CreateUnlessNamed,
    subcommand_metavar="[create] DIR [OPTIONS] | add-node DIR NAME=IP... | renew DIR | divide-etcd DIR",
    short_help="Write the files of an installation: certificates, settings and units for each machine.",
)
def init() -> None:
    """Write the files of an installation in production: `hq init DIR --location ams --node hq-1=10.0.0.1 ...`.

    Private CAs apart for servers, agents and etcd, certificates, policies, settings and systemd units for each machine,
    a token for the admin, and DIR/README.md with the commands. Options: see `hq init create --help`; all steps:
    docs/production.md.
    """


@init.command("create")
@_folder
@click.option("--location", default="", metavar="NAME", help="Name of the location: ams.")
@click.option(
    "--node",
    "hq",
    multiple=True,
    metavar="NAME=IP",
    help="Machine that runs a replica and the other servers. Repeatable.",
)
@click.option(
    "--etcd", multiple=True, metavar="NAME=IP", help="Machine that runs a member of etcd: 3 or 5. Repeatable."
)
@click.option("--etcd-on", type=click.Choice(["hq-nodes"]), help="Members of etcd are on the machines of --node.")
@click.option("--trust-domain", default="hq.example", show_default=True, help="Of the identities in certificates.")
@click.option(
    "--admin", default="ops/admin", show_default=True, metavar="NAME", help="Who gets all rights, by a token."
)
@click.option(
    "--join",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of another location: take its CAs, key of tokens, trust domain and admin, and name each to the other.",
)
def create(folder: Path, join: Path | None, **given: Any) -> None:
    """Write the files of an installation into DIR, or complete and refresh those that are there.

    Keys and the files in DIR/config are never overwritten; --join adds a location to federated.yaml of both. Without
    options: what DIR/installation.yaml says.
    """
    with _with_usage_errors(folder):
        beside = _plan_beside(join) if join is not None else None
        if beside is not None:
            agents = f"{given['location']}/{AGENTS}"
            given |= {"trust_domain": beside.trust_domain, "admin": beside.admin, "agents": agents}
        stored = read_plan(folder) if (folder / FILE).exists() else None
        if stored is not None and not given["location"]:
            _refuse_machines(folder, given)
        plan = _plan_from(given) if given["location"] or stored is None else stored
        if stored is not None and not _is_part_of(plan, stored):
            raise BadPlan(
                f"{folder / FILE} says otherwise: change it there, and run `hq init {folder}` without options"
            )
        plan = stored or plan
        if join is None or beside is None:
            _write(folder, plan)
            return
        check_config(folder)
        check_config(join)
        join_locations(folder, plan, join, beside)
        _write(folder, plan)
        _write(join, beside)


def _plan_beside(join: Path) -> InstallationPlan:
    try:
        return read_plan(join)
    except BadPlan as error:
        raise BadPlan(f"--join {error}") from None


@init.command("add-node")
@_folder
@click.argument("machines", metavar="NAME=IP...", nargs=-1, required=True)
@click.option("--hq", "runs_hq", is_flag=True, help="It runs a replica and the other servers, instead of instances.")
def add_node(folder: Path, machines: tuple[str, ...], runs_hq: bool) -> None:
    """Add machines to the installation in DIR: certificates, settings and units of each."""
    with _with_usage_errors(folder):
        plan = read_plan(folder)
        held = plan.hq if runs_hq else plan.nodes
        group = "hq" if runs_hq else "nodes"
        added = parse_machines(machines, group)
        for name, address in added.items():
            if held.get(name, address) != address:
                raise BadPlan(f"{group} {name}: is there with another address; change it in {folder / FILE}")
        both = {**held, **added}
        changed = replace(plan, hq=both) if runs_hq else replace(plan, nodes=both)
        changed.check()
        _write(folder, changed)


@init.command("renew")
@_folder
@click.option("--all", "every", is_flag=True, help="Renew everything, due or not.")
def renew(folder: Path, every: bool) -> None:
    """Renew the certificates that end within 30 days, and tokens within 16 hours; DIR/distribute copies them."""
    with _with_usage_errors(folder):
        installation = InstallationFolder(folder.resolve(), read_plan(folder), datetime.now(UTC))
        if every:
            installation.renew(authority.CA_VALID, authority.CA_VALID)
        else:
            installation.renew(authority.DUE, tokens.DUE)
        for name in (*installation.written.certificates, *installation.written.tokens):
            click.echo(f"renewed {name}")


@init.command("divide-etcd")
@_folder
def divide_etcd(folder: Path) -> None:
    """Let the CMS, Nanny and Wall-E open their own records in etcd only; replicas open everything, and administer it.

    Once etcd runs; again after an own prefix (CMS_PREFIX) was set in DIR/config. Whoever shows another certificate of
    etcd's CA opens nothing afterwards. Exit code 5: etcd does not answer (yet); 7: its certificate is not let in.
    """
    with _with_usage_errors(folder):
        plan = read_plan(folder)
        parts = prefixes_of(folder, plan)
        try:
            asyncio.run(divide(folder, plan, parts))
        except (StoreError, BadSecurity) as error:
            code, step = next_step(error, folder, plan)
            click.echo(f"hq: etcd was not divided: {error}: {step}", err=True)
            sys.exit(code)
        for user, prefix in parts.items():
            click.echo(f"{user} opens {prefix}")


def _is_part_of(asked: InstallationPlan, stored: InstallationPlan) -> bool:
    """Whether the folder's plan began with the one asked for: machines may have been added since.

    No option sets `agents`: a folder keeps the value that it was written with, as its policies do.
    """
    kept = replace(asked, nodes=stored.nodes, hq=stored.hq, agents=stored.agents)
    return asked.hq.items() <= stored.hq.items() and kept == stored


def _refuse_machines(folder: Path, given: dict[str, Any]) -> None:
    """Raises BadPlan if machines are given: without --location they would be ignored."""
    if given["hq"] or given["etcd"] or given["etcd_on"]:
        more = f"hq init add-node {folder} {' '.join(given['hq'] or ('NAME=IP',))} --hq"
        raise BadPlan(f"{folder} exists: --node and --etcd count only when it is first written. A machine more: {more}")


def _plan_from(given: dict[str, Any]) -> InstallationPlan:
    if not given["location"]:
        raise BadPlan("--location: name the location, such as --location ams")
    machines = parse_machines(given["hq"], "--node")
    if bool(given["etcd"]) == bool(given["etcd_on"]):
        raise BadPlan("name 3 or 5 machines of etcd with --etcd NAME=IP, or give --etcd-on hq-nodes")
    members = machines if given["etcd_on"] else parse_machines(given["etcd"], "--etcd")
    texts = given["trust_domain"], given["admin"], given.get("agents", AGENTS)
    plan = InstallationPlan(given["location"], machines, members, {}, *texts)
    plan.check()
    return plan


def _write(folder: Path, plan: InstallationPlan) -> None:
    check_config(folder)
    installation = InstallationFolder(folder.resolve(), plan, datetime.now(UTC))
    installation.write()
    made = installation.written
    counts = ((made.certificates, "certificates"), (made.tokens, "tokens"), (made.others, "other files"))
    click.echo(f"{folder}: wrote {', '.join(f'{len(names)} {what}' for names, what in counts)}")
    click.echo(f"next: {folder}/README.md")


@contextmanager
def _with_usage_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (BadPlan, BadKeyFile) as error:
        click.echo(f"hq: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        fault = f"{error.filename}: {error.strerror}"
        click.echo(f"hq: {folder}: cannot be written ({fault}): choose a folder that this user can write", err=True)
        sys.exit(1)
