"""Commands on pages are run by a test; those that are not stand here with the reason, and name what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

import click
import pytest

from tests.unit.project.test_command_line import PROGRAMS, cli

ROOT: Final = Path(__file__).resolve().parents[3]
PAGES: Final = (*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "deploy/README.md")))
_PROGRAMS: Final = (
    r"hqctl|nanny|walle|cms|hq|hq-[a-z]+|instancectl|make|curl|ssh|systemctl|python3?|dig|kubectl|openssl|ams/\S+"
)
COMMAND: Final = re.compile(rf"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:{_PROGRAMS}) ", re.MULTILINE)

# The test that runs the blocks of a page, which it reads.
RUN: Final = {
    "backup.md": "tests/releases/test_backup_page.py",
    "cms-end-to-end.md": "tests/cms/test_end_to_end_page.py",
    "cms.md": "tests/cms/test_page.py",
    "discovery.md": "tests/clients/test_discovery_docs.py",
    "end-to-end.md": "tests/acceptance/test_end_to_end_page.py",
    "federated.md": "tests/federated/test_docs.py",
    "gateways.md": "tests/gateways/test_walk.py",
    "getting-started.md": "tests/acceptance/test_getting_started.py",
    "hqctl.md": "tests/clients/hqctl/test_docs.py",
    "http.md": "tests/acceptance/test_http_page.py",
    "instancectl.md": "tests/clients/instancectl/test_docs.py",
    "nanny-canary.md": "tests/nanny/test_how_to.py",
    "nanny-service.md": "tests/nanny/test_how_to.py",
    "nanny.md": "tests/clients/nanny/test_docs.py",
    "operations.md": "tests/releases/test_operations_page.py",
    "production.md": "tests/acceptance/production_walk.py",
    "scale.md": "tests/unit/sizing/test_plan_command.py",
    "security.md": "tests/acceptance/test_security_page.py",
    "walle.md": "tests/walle/test_walk.py",
    "deploy/README.md": "tests/support/shipped.py",
}
# By page and the beginning of a block: why no test runs it.
NOT_RUN: Final = {
    "README.md": {
        "make run": "tests/acceptance/test_run.py runs it",
        ".venv/bin/hqctl apply": "getting-started.md has the same, and is run",
    },
    "deploy/README.md": {"kubectl --context east": "it takes a cluster; kustomize builds what it applies"},
    "client-conformance.md": {"PYTHONPATH=": "tests/conformance/test_python.py runs that client"},
    "cms.md": {"$ hqctl disruptions why": "an answer from a real day"},
    "console.md": {
        ".venv/bin/hq-console serve": "tests/console/test_real.py starts it",
        "hq-console serve": "an example of flags, over machines that are not here",
    },
    "gateways.md": {"curl '127.0.0.1:7680": "tests/gateways/test_consul.py asks with filters"},
    "instancectl.md": {
        "instancectl node": "a synopsis",
        "instancectl host-agent": "a synopsis",
        "mkdir -p /run/systemd": "it takes systemd; test_node_migration.py does the same with processes",
    },
    "logs.md": {"curl -si": "tests/acceptance/test_logs.py asks so"},
    "operations.md": {
        "hq serve": "a location over machines that are not here; production.md is run",
        "curl -s 'http://127.0.0.1:7080/sd": "tests/acceptance/test_prometheus.py asks so",
    },
    "performance.md": {"make bench": "it measures for half an hour"},
    "production.md": {
        "make setup": "played machines share one installed HQ",
        "etcd=etcd-v": "it downloads; tests/unit/installation/test_etcd_on_the_page.py runs it with a curl of its own",
    },
    "typescript.md": {"PYTHONPATH=": "tests/conformance/test_typescript.py runs that client"},
    "walle.md": {
        "walle scenarios add": "a synopsis; tests/walle/ orders such work",
        "walle notices list": "a synopsis",
    },
}


class Block(NamedTuple):
    page: str
    text: str

    @property
    def reason(self) -> str | None:
        """Why the block is not run; None: it is run."""
        return next((why for begin, why in NOT_RUN.get(self.page, {}).items() if self.text.startswith(begin)), None)


BLOCKS: Final = [
    Block(str(path.relative_to(ROOT)).removeprefix("docs/"), text)
    for path in PAGES
    for kind, text in re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
    if kind in ("", "sh", "console") and COMMAND.search(text)
]


def test_every_page_with_commands_is_run_or_says_why_not() -> None:
    assert sorted({block.page for block in BLOCKS if block.reason is None} - RUN.keys()) == []
    assert len(BLOCKS) > 80


@pytest.mark.parametrize("page", RUN)
def test_the_test_of_a_page_names_the_page(page: str) -> None:
    assert Path(page).name in (ROOT / RUN[page]).read_text()


def test_every_reason_for_not_running_belongs_to_a_block() -> None:
    left = [
        (page, begin)
        for page, reasons in NOT_RUN.items()
        for begin in reasons
        if not any(block.page == page and block.text.startswith(begin) for block in BLOCKS)
    ]
    assert left == []


def unknown_words(line: str) -> list[str]:
    """Commands and flags in the line that our program does not have."""
    words = shlex.split(line.removeprefix("$ ").replace("[", "").replace("]", ""), comments=True)
    program = Path(words[0]).name if words else ""
    if program not in PROGRAMS:
        return []
    command, flags = cli(program), set[str]()
    for word in words[1:]:
        flags |= {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
        if isinstance(command, click.Group) and not word.startswith("-"):
            below = command.get_command(click.Context(command), word)
            command = below or command
    flags |= {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    return [
        f"{line}: {word}" for word in words[1:] if word.startswith("--") and word.split("=")[0].strip(",") not in flags
    ]


def test_blocks_that_are_not_run_name_existing_flags() -> None:
    lines = (line for block in BLOCKS if block.reason for line in block.text.replace("\\\n", " ").splitlines())
    assert [
        fault for line in lines if COMMAND.match(line) and line.count("'") % 2 == 0 for fault in unknown_words(line)
    ] == []
