"""The checker is checked: it finds every bug that is put into HQ, and finds nothing where there is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.recorded_run import played
from tests.support.seeded_bugs import ALL
from tests.support.seeded_bugs.bug import Bug, Scene

DOCS = Path(__file__).parent.parent.parent / "docs" / "evidence.md"
SCENES = list(dict.fromkeys(bug.scene for bug in ALL))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("seed", range(1, 4))
def test_a_play_without_a_bug_keeps_every_promise(scene: Scene, seed: int) -> None:
    assert [str(violation) for violation in played(scene, seed=seed)] == []


@pytest.mark.parametrize("bug", ALL, ids=lambda bug: bug.name)
def test_a_seeded_bug_is_found_and_named(bug: Bug) -> None:
    with pytest.MonkeyPatch.context() as patch:
        bug.seed(patch)
        found = played(bug.scene)
    assert bug.word in {violation.word for violation in found}, [str(violation) for violation in found]


def test_there_are_many_seeded_bugs_and_every_promise_has_one() -> None:
    assert len(ALL) >= 25
    assert {bug.word for bug in ALL} == {
        *("DURABLE", "SETTLED", "EXACT", "FRESH", "GENUINE", "KEPT", "HEARD", "REFUSED", "CONVERGED", "GHOST", "GONE"),
        *("ORDERED", "UNIQUE", "WHOLE", "COMPLETE", "RESUMABLE", "EXPLICIT"),
    }


def test_the_table_in_the_docs_has_exactly_the_bugs_of_the_code() -> None:
    section = DOCS.read_text().split("## The checker is checked")[1].split("\n## ")[0]
    table = re.findall(r"^\| `(\w+)` \| (.*) \| (\w+) \|$", section, re.MULTILINE)
    assert table == [(bug.name, bug.says, bug.word) for bug in ALL]
