"""The command: `python -m tests.rig faults --duration 10m`.

Exit codes: 0 all promises hold, 1 one is broken, 2 nothing can be said: the rig itself could not do its work.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import uvloop

from serving.flags import Duration
from tests.cms.test_seeded_bugs import BUGS_IN_PROCESSES
from tests.control import command as control
from tests.rig.assembling import anomalies, assemble
from tests.rig.cms_run import LEAST_GRANTS_PER_MINUTE, CmsRun
from tests.rig.installation import MEMBERS, PREFIX
from tests.rig.nanny_run import LEAST_ROLL_OUTS_PER_MINUTE, NannyRun
from tests.rig.places import NoNamespaces, Places, apart, on_the_loopback, rig_command
from tests.rig.report import report
from tests.rig.run import RELY_ON, Inconclusive, NotRecovered, Run, Settings
from tests.rig.soak import soak as soaked
from tests.rig.trust import PLAIN, made_for
from tests.rig.verdict import unforeseen, violations_of
from tests.rig.walle_run import LEAST_DNS_FIXES_PER_MINUTE, LEAST_REPAIRS_PER_MINUTE, WalleRun
from tests.support.etcd import RELEASES, newest_of

T = TypeVar("T")
_INSIDE = "RIG_IS_IN_ITS_NAMESPACE"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Real processes, real faults, and a checker: does HQ keep its promises?"""


@cli.command()
@click.option("--duration", type=Duration(), default="10m", show_default=True, help="How long faults are struck.")
@click.option("--seed", type=int, default=None, help="Which faults; default: made up, and printed.")
@click.option("--etcd", "version", type=click.Choice(RELEASES), default="3.5", show_default=True)
@click.option("--gap", type=Duration(), default="2s", show_default=True, help="Between two faults, on average.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Directory for history and logs.")
@click.option("--schedule", "only_schedule", is_flag=True, help="Print the faults of the seed, and do nothing.")
@click.option("--namespaces", is_flag=True, help="Members and replicas in network namespaces; packets get lost too.")
@click.option("--tls", is_flag=True, help="TLS between replicas and etcd, and before replicas and the gateway.")
def faults(
    duration: float,
    seed: int | None,
    version: str,
    gap: float,
    out: Path | None,
    only_schedule: bool,
    namespaces: bool,
    tls: bool,
) -> None:
    """Strike faults, record everything, check the history."""
    with _places(namespaces) as places:
        seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
        directory = out or Path(tempfile.mkdtemp(prefix="hq-faults-"))
        trust = made_for(directory, places) if tls else PLAIN
        run = Run(Settings(newest_of(version), directory, seed, duration, gap, places=places, trust=trust), say)
        if only_schedule:
            click.echo("\n".join(map(str, run.orders())))
            return
        title = f"seed {seed}, etcd {version}, {duration:.0f} s; repeat: "
        title += f"make faults DURATION={duration:.0f}s SEED={seed} ETCD={version}"
        title += f"{' NAMESPACES=1' if namespaces else ''}{' TLS=1' if tls else ''}; history and logs: {directory}"
        say(title)
        code = _outcome(run, directory, title)
    sys.exit(code)


@cli.command()
@click.option("--duration", type=Duration(), default="20m", show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--etcd", "version", type=click.Choice(RELEASES), default="3.5", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Directory for logs.")
def soak(duration: float, seed: int, version: str, out: Path | None) -> None:
    """Mixed load for long: memory, descriptors, tasks and threads have to stay flat."""
    directory = out or Path(tempfile.mkdtemp(prefix="hq-soak-"))
    say(f"soak of {duration:.0f} s over etcd {version}; logs: {directory}")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            flat = runner.run(_interruptible(soaked(newest_of(version), directory, duration, seed, say)))
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        click.echo(f"inconclusive: {error!r}", err=True)
        sys.exit(2)
    sys.exit(0 if flat else 1)


def _of_a_controller(function: Callable[..., None]) -> click.Command:
    """A command with the options of such runs."""
    for option in (
        click.option(
            "--duration", type=Duration(), default="2m", show_default=True, help="How long faults are struck."
        ),
        click.option("--seed", type=int, default=None, help="Which faults; default: made up, and printed."),
        click.option("--out", type=click.Path(path_type=Path), default=None, help="Directory for logs."),
    ):
        function = option(function)
    return cli.command()(function)


@_of_a_controller
@click.option("--bug", default="", help="One of tests/cms/test_seeded_bugs.py that the CMS has: it ends once found.")
def cms(duration: float, seed: int | None, out: Path | None, bug: str) -> None:
    """The CMS: processes killed, paused, cut off from HQ and from etcd; no floor, freeze or wait is broken."""
    awaited = next((word for one, word in BUGS_IN_PROCESSES if one.__name__ == bug), "")
    run = CmsRun(*_begun("cms", duration, seed, out), say, bug, awaited)
    _ran(run.run(duration))
    broken = [str(one) for one in run.broken()]
    per_minute = run.grants * 60 / duration
    if per_minute < LEAST_GRANTS_PER_MINUTE and not bug:
        broken.append(f"USEFUL is broken: {per_minute:.1f} grants a minute; at least {LEAST_GRANTS_PER_MINUTE}")
    click.echo(f"faults: {dict(run.struck)}; {run.grants} grants ({per_minute:.0f} a minute); {dict(run.answers)}")
    click.echo(f"what polls waited for: {dict(run.waited)}")
    click.echo("\n".join(broken) or "FLOOR, CALENDAR, STARVED, BOUNCE hold")
    sys.exit(1 if broken else 0)


@_of_a_controller
def walle(duration: float, seed: int | None, out: Path | None) -> None:
    """Wall-E: processes killed, paused, without etcd, CMS, controllers or names; never more than limits allow."""
    run = WalleRun(*_begun("walle", duration, seed, out), say)
    _ran(run.run(duration))
    for what, count, least in (
        ("repairs", run.repairs, LEAST_REPAIRS_PER_MINUTE),
        ("DNS fixes", run.dns_fixes, LEAST_DNS_FIXES_PER_MINUTE),
    ):
        if count * 60 / duration < least:
            run.broken.append(f"USEFUL is broken: {count * 60 / duration:.1f} {what} a minute; at least {least}")
    story = run.history
    seen = f"{story.uses} automatic operations, {story.deaths} hosts given up, {story.trips} trips of fuses, "
    seen += f"{story.apart} operations of one automation while the other was off"
    click.echo(f"faults: {dict(run.struck)}; {run.repairs} repairs, {run.dns_fixes} DNS fixes; {seen}")
    click.echo("\n".join(run.broken) or "ALLOWED, ONCE, APART, DEAD, LEAVE, EFFORT, ITSELF, WAVE, SETTLED hold")
    sys.exit(1 if run.broken else 0)


@_of_a_controller
def nanny(duration: float, seed: int | None, out: Path | None) -> None:
    """Nanny: processes killed, paused, cut off, replicas of HQ and nodes, too; steps, aborts and bad snapshots."""
    run = NannyRun(*_begun("nanny", duration, seed, out), say)
    _ran(run.run(duration))
    broken = [str(one) for one in run.violations()]
    per_minute = len(run.arrived) * 60 / duration
    if per_minute < LEAST_ROLL_OUTS_PER_MINUTE:
        broken.append(f"USEFUL is broken: {per_minute:.1f} roll-outs a minute; at least {LEAST_ROLL_OUTS_PER_MINUTE}")
    accepted = sum(run.answers.values())
    click.echo(
        f"faults: {dict(run.struck)}; {accepted} of {len(run.answers)} orders accepted, {len(run.arrived)} roll-outs "
        f"arrived, {len(run.bad)} bad ones caught, {len(run.looks)} looks, "
        f"fewest ready {min((len(one.ready) for one in run.looks), default=0)}"
    )
    click.echo("\n".join(broken[:10]) or "SERVES, ONCE, CAUGHT and ARRIVES hold")
    sys.exit(1 if broken else 0)


def _begun(name: str, duration: float, seed: int | None, out: Path | None) -> tuple[Path, int]:
    """Where, and which seed; both are printed."""
    seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    directory = out or Path(tempfile.mkdtemp(prefix=f"{name}-faults-"))
    say(f"seed {seed}, {duration:.0f} s, logs in {directory}")
    return directory, seed


def _ran(work: Coroutine[Any, Any, None]) -> None:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_interruptible(work))
    except (asyncio.CancelledError, KeyboardInterrupt) as error:
        click.echo(f"inconclusive: {error!r}", err=True)
        sys.exit(2)


cli.add_command(control.cli, "control")


@contextmanager
def _places(namespaces: bool) -> Iterator[Places]:
    """The rig begins once more, in a namespace of its own, before it makes others."""
    if not namespaces:
        yield on_the_loopback(MEMBERS)
        return
    try:
        if not os.environ.get(_INSIDE):
            command = rig_command([sys.executable, "-m", "tests.rig", *sys.argv[1:]])
            os.execvpe(command[0], command, {**os.environ, _INSIDE: "1"})
        with apart(MEMBERS) as places:
            yield places
    except NoNamespaces as error:
        click.echo(f"inconclusive: no network namespaces on this machine ({error}): leave --namespaces out", err=True)
        sys.exit(2)


def _from_checkpoints(directory: Path) -> str:
    logs = [log.read_text(errors="replace") for log in directory.glob("replica-*-*.log")]
    return f"{sum('read a checkpoint of' in text for text in logs)} of {len(logs)}"


def _outcome(run: Run, directory: Path, title: str) -> int:
    broken: list[str] = []
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_interruptible(run.run()))
    except (Inconclusive, asyncio.CancelledError, KeyboardInterrupt) as error:
        click.echo(f"inconclusive: {error!r}", err=True)
        return 2
    except (NotRecovered, AssertionError) as error:  # the latter: a process of HQ did not start
        broken.append(f"RECOVERED is broken: {error}")
    notes = [f"lists that the gateway gave from memory: {run.hq.followed_answers}"]
    notes += [f"starts of replicas from a checkpoint: {_from_checkpoints(directory)}"]
    if not broken:
        say("checking the history")
        history = directory / "history.jsonl.gz"
        assemble(history, run.raws, run.cuts, run.log.path, run.finals, PREFIX)
        notes += [f"etcd's watch repeated itself: {one}" for one in anomalies(run.raws)[:5]]
        broken += violations_of(history, RELY_ON)
    broken += unforeseen(directory)
    click.echo(report(title, run.nemesis.struck, run.nemesis.failed, run.log.counts, run.log.errors, broken, notes))
    return 1 if broken else 0


async def _interruptible(work: Coroutine[Any, Any, T]) -> T:
    """SIGTERM ends it as Ctrl-C does: everything that was started is ended."""
    running = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    return await running


def say(line: str) -> None:
    """Progress, at once."""
    click.echo(line)


if __name__ == "__main__":
    cli()
