"""The shipped policies give our own servers what they call, and no role beyond it: docs/security.md, Least rights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from hqapi.rules import SILENCE, SUSPEND, UPLOAD
from serving.auth.policy import AccessPolicy, parse
from serving.rights.rules import BUDGET, LEAVE, OPERATE, READ, READ_METRICS, STOP, Role, Rule
from walle.reach import ORDER, REPORT

_FOLDER: Final = Path(__file__).resolve().parents[3] / "deploy" / "policies"
_OURS: Final = "spiffe://hq.example/"
# Server: who, which rules it calls under, which it does not come through.
NEEDS: Final = {
    "hq": (
        ("wall-e", (READ, SILENCE, SUSPEND), (UPLOAD, OPERATE)),
        ("nanny", (READ, UPLOAD), (SUSPEND, OPERATE)),
        ("cms", (READ,), (UPLOAD, SUSPEND, OPERATE)),
        ("recorder", (READ,), (UPLOAD, SUSPEND, OPERATE)),
        ("gateway", (READ,), (UPLOAD, SUSPEND, OPERATE)),
        ("federated", (READ,), (UPLOAD, SUSPEND, OPERATE)),
        ("prometheus", (READ, READ_METRICS), (UPLOAD, OPERATE)),
    ),
    "hq-cms": (
        ("wall-e", (READ, LEAVE), (BUDGET, STOP, OPERATE)),
        ("nanny", (READ, LEAVE), (STOP, OPERATE)),
        ("prometheus", (READ_METRICS,), (LEAVE, BUDGET, STOP)),
    ),
    "hq-nanny": (("prometheus", (READ_METRICS,), (STOP,)),),
    "hq-walle": (
        ("alertmanager", (REPORT,), (READ, ORDER, READ_METRICS)),
        ("agent/node-1", (REPORT, READ), (ORDER,)),
        ("prometheus", (READ_METRICS,), (ORDER, REPORT)),
    ),
}
_ROWS: Final = [(server, *row) for server, rows in NEEDS.items() for row in rows]


def policy(server: str) -> AccessPolicy:
    return parse((_FOLDER / f"{server}.yaml").read_bytes())


@pytest.mark.parametrize(("server", "who", "let_in", "kept_out"), _ROWS, ids=lambda value: str(value)[:20])
def test_a_server_may_call_what_it_needs_and_nothing_else(
    server: str, who: str, let_in: tuple[Rule, ...], kept_out: tuple[Rule, ...]
) -> None:
    roles = policy(server).scopes(_OURS + who, None).keys()
    assert [rule.name for rule in let_in if not rule.roles & roles] == []
    assert [rule.name for rule in kept_out if rule.roles & roles] == []


@pytest.mark.parametrize("path", sorted(_FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_no_server_of_ours_is_operator_or_admin_anywhere(path: Path) -> None:
    names = {word.removeprefix(_OURS) for word in path.read_text().split('"') if word.startswith(_OURS)}
    for name in names:
        roles = parse(path.read_bytes()).scopes(_OURS + name.replace("{node}", "n1"), None)
        assert not roles.keys() & {Role.OPERATOR, Role.ADMIN}, name


_ROOT: Final = _FOLDER.parents[1]
_FENCED: Final = re.compile(r"^```[a-z]*\n(roles:\n.*?)^```", re.DOTALL | re.MULTILINE)


def written_policies() -> dict[str, bytes]:
    """Every policy that somebody may copy: in the pages, in the examples, and those that are shipped."""
    found = {
        f"{page.name}:{number}": text.encode()
        for page in sorted((_ROOT / "docs").rglob("*.md"))
        for number, text in enumerate(_FENCED.findall(page.read_text()))
    }
    files = [*(_ROOT / "examples").rglob("*.yaml"), *_FOLDER.glob("*.yaml")]
    texts = {str(file.relative_to(_ROOT)): file.read_bytes() for file in sorted(files)}
    return found | {name: text for name, text in texts.items() if text.startswith(b"roles:") or b"\nroles:\n" in text}


_WRITTEN: Final = written_policies()


def test_policies_on_the_pages_are_found_too() -> None:
    assert {name.partition(":")[0] for name in _WRITTEN} >= {"security.md", "deploy/policies/hq.yaml"}


@pytest.mark.parametrize("name", _WRITTEN)
def test_a_policy_that_may_be_copied_is_valid_and_gives_nobody_everything(name: str) -> None:
    parse(_WRITTEN[name])
    roles: dict[str, list[dict[str, list[str]]]] = yaml.safe_load(_WRITTEN[name])["roles"]
    for role, grants in roles.items():
        for grant in grants:
            assert not {"*", "*/*"} & set(grant["identities"]), f"{role}: anybody whose token is signed"
            assert "*:*" not in grant.get("secrets", []), f"{role}: every secret"
            if role == "agent":
                assert all("{node}" in one for one in grant["identities"]), "an agent speaks of its own node"
