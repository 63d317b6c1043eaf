"""The command: everything started in order, its addresses printed, everything ended by Ctrl-C."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path

import click
import grpc

from hqclient import Client
from hqpb.v1 import service_pb2 as pb
from store.embedded import EtcdFailed, EtcdNotFound
from tools.cloud import contents
from tools.cloud.children import Child, ChildFailed
from tools.cloud.ground import GroundTaken, ground
from tools.cloud.parts import BAD_KERNEL, BROKEN, HOSTS_PER_RACK, NODES, PARTS, Known, Part
from tools.cloud.setting import PER_SERVICE, ROOT, SERVICES, START_S, node_name
from tools.cloud.stage import Refused, Stage

_DATA = ".hq-cloud"
_LOOK_S = 0.5
_EXPECTED = (ChildFailed, EtcdFailed, EtcdNotFound, GroundTaken, Refused, OSError, grpc.aio.AioRpcError, TimeoutError)
_NEXT = """
three things to try in the browser, http://{console}
  1. Services fall below their floor; Problems says which and why:
       touch {broken}/east-n0{{1..5}}     # a rack falls silent; rm -f ends it
     Wall-E asks to reboot these hosts within half a minute, unless it has declared the rack an incident by then; the
     CMS does not agree while another rack is under work. To prevent it: Projects, cloud, Healing, "Switch off..."
  2. Roll shop back: Services, shop, "Snapshots, roll back", "Roll back to this..."
     {shop}
  3. Upgrade a switch: first rm -f {broken}/east-n0{{1..5}};
     then Planned work, "Switch maintenance...". s-east-r3 is approved; s-west-r1 never is, and its page says why.

and in a terminal (docs/walle.md has a longer walk):
  hqctl --server {gateway} find web
  hqctl disruptions --cms {cms}
  export WALLE_SERVER={walle}
  touch {broken}/east-n08            # one host: it is rebooted with approval of the CMS, which removes the file
  walle hosts get east-n08
  export NANNY_SERVER={nanny}
  nanny rollout show shop            # what its last roll-out did, and when

planned work, in the same terminal:
  export HQ_CMS={cms} HQ_RECORDER={recorder}
  4. A repair goes before planned work: of each location, one rack at a time may be under work.
       hqctl disruptions ask north-n02 --id new-kernel --provisional --reason 'new kernel'
       touch {broken}/north-n07            # in another rack
       hqctl history decisions new-kernel   # its ok was taken back, and comes again after the repair
       hqctl disruptions done new-kernel
  5. A freeze keeps planned work from beginning, and no repair.
       hqctl windows apply -f {data}/freeze.yaml
       hqctl disruptions ask west-n06 --id in-freeze --reason 'new kernel'   # exit code 8: it waits
       touch {broken}/west-n07             # it is rebooted all the same
       hqctl windows delete freeze
       hqctl disruptions done in-freeze
  6. A switch may take away half of a service for a quarter of an hour, where other work may take a tenth.
       walle scenarios add switch-maintenance --switch s-west-r1 --ticket NET-9
       walle scenarios get NET-9            # each service would lose ten of sixty
       hqctl budget apply -f {data}/brief.yaml
       walle scenarios get NET-9            # the work may begin
       walle scenarios done NET-9
  7. A planned reboot stops at a bad kernel.
       touch {data}/bad-kernel/east-n12
       walle scenarios add mass-reboot kernel-6.12 east-n11 east-n12 east-n13 east-n14 --ticket OPS-7
       walle scenarios get kernel-6.12      # stopped at east-n12: neither east-n13 nor east-n14 was touched
"""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data", type=click.Path(path_type=Path), default=ROOT / _DATA, help="Its directory, removed at the end."
)
@click.option("--trouble", is_flag=True, help="Darken a rack, roll out a bad version, ask for a switch upgrade.")
def cli(data: Path, *, trouble: bool) -> None:
    """Run three locations, CMS, Nanny, Wall-E, console and gateways over simulated instances."""
    try:
        with ground(data.absolute()) as directory:
            asyncio.run(_run(directory, trouble=trouble))
    except* _EXPECTED as group:
        for error in group.exceptions:
            click.echo(f"cloud: {error}", err=True)
        sys.exit(1)


async def _run(directory: Path, *, trouble: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    cloud = Cloud(directory, trouble=trouble)
    tasks = [asyncio.create_task(each) for each in (cloud.run(), stop.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await cloud.end()
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if failures:
        raise ExceptionGroup("the cloud failed", failures)
    click.echo("the cloud has stopped; nothing is left")


class Cloud:
    """Runs until cancelled; whatever happened, `end` stops every process."""

    def __init__(self, directory: Path, *, trouble: bool) -> None:
        self._directory, self._trouble = directory, trouble
        self._stage = Stage(directory, random.Random(), NODES)
        self._children: list[Child] = []

    async def run(self) -> None:
        """Start everything and go on. Raises ChildFailed, and others in an ExceptionGroup."""
        simulated, shop = len(NODES) * len(SERVICES) * PER_SERVICE, len(NODES) * contents.EACH
        told = f"{simulated + shop} instances, {shop} of them of Nanny's service {contents.SERVICE}"
        click.echo(f"starting three locations, {told}, on {sum(NODES.values())} hosts ...")
        playing, breaking = asyncio.create_task(self._stage.play()), asyncio.create_task(self._silence_the_broken())
        try:
            while not self._stage.gateway.is_up:
                await asyncio.wait([playing], timeout=0.1)
                if playing.done():
                    break
            if not playing.done():
                await self._start_parts()
            await playing
        finally:
            for task in (playing, breaking):
                task.cancel()
            await asyncio.gather(playing, breaking, return_exceptions=True)

    async def end(self) -> None:
        """Stop every process, the last one first."""
        for child in reversed(self._children):
            await child.stop()
        await self._stage.end()

    async def _silence_the_broken(self) -> None:
        """Hosts that are named in a directory say nothing, until Wall-E's executor has removed the file."""
        broken = self._directory / BROKEN
        broken.mkdir()
        (self._directory / BAD_KERNEL).mkdir()
        while True:
            await asyncio.sleep(_LOOK_S)
            for crew in self._stage.crews.values():
                crew.silence_only({file.name for file in broken.iterdir()})

    async def _start_parts(self) -> None:
        stage, started = self._stage, dict[str, str]()
        click.echo(f"  {'gateway':<8} gRPC and HTTP {stage.gateway.grpc}")
        locations = {name: location.addresses for name, location in stage.locations.items()}
        for name, addresses in locations.items():
            click.echo(f"  {name:<8} gRPC and HTTP {' '.join(addresses)}")
        etcd = next(iter(stage.locations.values())).etcd
        for part in PARTS:
            known = Known(self._directory, etcd, locations, stage.gateway.grpc, started)
            started[part.name] = await self._start(part, known)
            click.echo(f"  {part.name:<8} {started[part.name]}")
        contents.write_files(self._directory)
        await contents.fill(started)
        if not self._trouble:
            await contents.second_version(started)
        else:
            await contents.trouble(started, self._darken)
        shown = {name: started[name] for name in ("cms", "nanny", "walle", "console", "recorder")}
        shown["shop"] = (
            "(its newest version crashes after each start; its roll-out stopped itself at the canary)"
            if self._trouble
            else "(its second version was rolled out, one instance at a time, as its budget allows)"
        )
        click.echo(
            _NEXT.format(gateway=stage.gateway.grpc, data=self._directory, broken=self._directory / BROKEN, **shown)
        )
        click.echo("Ctrl-C stops everything.")

    async def _darken(self) -> None:
        """Silence a rack; return when HQ has marked all of it not ready."""
        nodes = [node_name("north", number + 1) for number in range(HOSTS_PER_RACK)]
        for node in nodes:
            (self._directory / BROKEN / node).touch()
        ready = pb.InstanceFilter(node_name=nodes, readiness=pb.READINESS_FILTER_READY)
        async with Client([self._stage.gateway.grpc]) as client, asyncio.timeout(START_S):
            while any(one.total for one in (await client.count(ready)).groups):
                await asyncio.sleep(_LOOK_S)
        click.echo(f"  trouble  {nodes[0]} to {nodes[-1]} are silent; open the console and find out what to do")

    async def _start(self, part: Part, known: Known) -> str:
        child = Child(part.name, part.module, part.arguments(known), self._directory / f"{part.name}.log")
        self._children.append(child)
        await child.start()
        return (await child.says(part.says))[1]
