"""Examples at the end of `hqctl COMMAND --help`: the command lines that people look for."""

from __future__ import annotations

from typing import Final

import click

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "get": (
        "hqctl get web-1",
        "hqctl get web-1 -o yaml > web-1.yaml",
        "hqctl get --node node-a --not-ready -o wide",
        "hqctl get web-1 -o jsonpath='{.spec.allocation.host}'",
        "hqctl get budgets",
        "hqctl get projects -o wide",
    ),
    "find": (
        "hqctl find web",
        "hqctl find web --not-ready --sort-by heartbeat",
        "hqctl find --node node-a -o name",
        "hqctl find -l tier=front -L tier,engine",
    ),
    "count": ("hqctl count web", "hqctl count --by node --not-ready", "hqctl count web --by revision -o json"),
    "watch": ("hqctl watch web", "hqctl watch --node node-a -o lines", "hqctl watch web --only-changes -o json"),
    "why": ("hqctl why web-1", "hqctl why web-1 -o jsonpath='{.summary}'"),
    "history": ("hqctl history events web --since 2h", "hqctl history find web --at 03:10", "hqctl history decisions"),
    "describe": ("hqctl describe web-1", "hqctl describe web-1 -o json"),
    "apply": (
        "hqctl apply -f web.yaml",
        "hqctl apply -R -f services/ --dry-run",
        "hqctl get web-1 -o yaml | sed 's/tier: front/tier: back/' | hqctl apply -f -",
    ),
    "diff": ("hqctl diff -f web.yaml", "hqctl diff -R -f services/ && echo nothing to do"),
    "edit": ("hqctl edit web-1", "EDITOR=nano hqctl edit web-1"),
    "set": ("hqctl set web-1 weight=10", "hqctl set web-1 web-2 weight=0", "hqctl set web-1 weight="),
    "delete": (
        "hqctl delete web-1 web-2",
        "hqctl delete --service web --not-ready --dry-run",
        "hqctl delete -f web.yaml --ignore-not-found",
    ),
    "revision": (
        "hqctl revision show web-1",
        "hqctl revision put web-1 -f r2.yaml",
        "hqctl revision activate web-1 r2",
    ),
    "wait": (
        "hqctl wait web-1 --timeout 2m",
        "hqctl wait --service web --for revision=r2 --timeout 10m",
        "hqctl wait web-1 --for gone",
    ),
    "report": (
        "hqctl report web-1 r1 --ready --every auto",
        "hqctl report web-1 r1 --not-ready --reason DiskFull --message 'no space on /srv'",
    ),
    "guard": (
        "hqctl guard status",
        "hqctl guard release --for 5m --reason 'rack 7 burnt down'",
        "hqctl guard force --for 30m --reason 'switch 7 is being replaced'",
    ),
    "status": (
        "hqctl status --server hq-1:7071,hq-2:7071,hq-3:7071",
        "hqctl --context east status > /dev/null || page-somebody",
        "hqctl status -o json",
    ),
    "top": ("hqctl top", "hqctl top --sort-by not-ready --limit 5", "hqctl top -w --since 10m"),
    "events": ("hqctl events", "hqctl events web-1 -o wide", "hqctl events -w"),
    "suspend": ("hqctl suspend node-b --for 30m --reason 'new disk'",),
    "resume": ("hqctl resume node-b",),
    "windows": (
        "hqctl windows list",
        "hqctl windows apply -f windows.yaml",
    ),
    "budget": (
        "hqctl budget list",
        "hqctl budget put web --service web --max-unavailable 10%",
        "hqctl budget apply -f budgets.yaml",
    ),
    "disruptions": (
        "hqctl disruptions why reboot-17",
        "hqctl disruptions plan -f hosts.txt",
        "hqctl disruptions freeze --reason 'network work tonight'",
    ),
    "config": ("hqctl config get-contexts", "hqctl config use-context east"),
}


def with_examples(command: click.Command) -> click.Command:
    """The command with its examples below its help."""
    lines = EXAMPLES.get(command.name or "", ())
    if lines and not command.epilog:
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
    return command
