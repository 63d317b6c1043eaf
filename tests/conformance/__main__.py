"""Hold a discovery client to the suite: `python -m tests.conformance [OPTIONS] -- COMMAND`.

COMMAND is started once, and again when a scenario kills it. It is asked in lines of JSON, as docs/client-conformance.md
has it. Exits with 1 if a scenario fails.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.client_process import ClientDied, ClientProcess
from tests.conformance.player import WITHIN_S, Player, ScenarioFailed
from tests.conformance.scenarios import FEATURES, Scenario, read_scenarios


async def play_all(command: Sequence[str], scenarios: Sequence[Scenario], within_s: float) -> list[str]:
    """Play them one after the other with one client; return the names of those that fail."""
    failed = []
    client = ClientProcess(command)
    for scenario in scenarios:
        began = time.monotonic()
        problem = await play_one(client, scenario, within_s)
        print(f"{'FAIL' if problem else 'ok  '} {scenario.name} ({time.monotonic() - began:.1f} s)", flush=True)
        if problem:
            failed.append(scenario.name)
            print(f"     promise: {scenario.promise}\n     {problem}", flush=True)
    await client.close()
    return failed


async def play_one(client: ClientProcess, scenario: Scenario, within_s: float = WITHIN_S) -> str:
    """Play one; return what was wrong, empty: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            await Player(scenario, client, Path(folder), within_s).play()
        except (ScenarioFailed, ClientDied) as error:
            await client.kill()
            return str(error)
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--only", default="", help="play scenarios whose names contain this")
    parser.add_argument("--lacks", default="", help=f"features that the client does without: {', '.join(FEATURES[1:])}")
    parser.add_argument("--within", type=float, default=WITHIN_S, help="seconds in which the client must show a thing")
    parser.add_argument("--list", action="store_true", help="list the scenarios and their promises")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    args = parser.parse_args()
    lacks = {feature for feature in args.lacks.split(",") if feature}
    if unknown := lacks - set(FEATURES[1:]):
        parser.error(f"--lacks {','.join(sorted(unknown))}: the features are {', '.join(FEATURES[1:])}")
    named = [scenario for scenario in read_scenarios() if args.only in scenario.name]
    if args.list:
        for scenario in named:
            print(f"{scenario.name} [{scenario.feature}]: {scenario.promise}")
        return
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        parser.error("name the command of the client: -- COMMAND")
    played = [scenario for scenario in named if scenario.feature not in lacks]
    failed = asyncio.run(play_all(command, played, args.within))
    print(f"{len(played) - len(failed)} passed, {len(failed)} failed, {len(named) - len(played)} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
