"""The file that a restart without HQ begins with."""

from __future__ import annotations

import json
import math
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hqclient.discovery.endpoint import KnownInstance
from hqclient.discovery.saved import SavedState, Unusable, file_name, load, save

ONE = KnownInstance("c", "web-1", 7, "web", "n1", "10.0.0.1", {"http": 80}, {"tier": "front"}, ("r1",))
STATE = SavedState(("web",), 1000.5, "token", (ONE,), {"c": "e1"})


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    save(tmp_path / "new" / "web.json", STATE)
    assert load(tmp_path / "new" / "web.json", ["web"]) == STATE


@pytest.mark.parametrize(
    ("as_of", "age_s"),
    [
        (100.0, 0.0),
        (40.0, 60.0),
        (100.1, math.inf),
        (7_300.0, math.inf),
        (0.0, math.inf),
        (math.nan, math.inf),
        (math.inf, math.inf),
        (-math.inf, math.inf),
    ],
)
def test_the_age_of_a_file_with_an_impossible_date_is_infinite(as_of: float, age_s: float) -> None:
    assert replace(STATE, as_of=as_of).age_s(100.0) == age_s


def test_a_missing_file_is_no_saved_list(tmp_path: Path) -> None:
    assert load(tmp_path / "web.json", ["web"]) is None


def test_only_its_owner_reads_a_file_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    for _ in range(2):
        save(tmp_path / "web.json", STATE)
    assert [p.name for p in tmp_path.iterdir()] == ["web.json"]
    assert stat.S_IMODE((tmp_path / "web.json").stat().st_mode) == 0o600


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    save(tmp_path / "web.json", STATE)
    broken = SavedState(("web",), 1.0, "", (object(),), {})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        save(tmp_path / "web.json", broken)
    assert load(tmp_path / "web.json", ["web"]) == STATE
    assert [p.name for p in tmp_path.iterdir()] == ["web.json"]


def test_names_of_files_are_safe_and_differ() -> None:
    names = [file_name(s) for s in (["web"], ["web", "db"], ["db+web"], ["../etc"], ["x" * 200], ["x" * 201], ["."])]
    assert len(set(names)) == len(names)
    assert all("/" not in name and len(name) < 200 and name.endswith(".json") for name in names)
    assert file_name(["web", "db"]) == file_name(["db", "web"]) == "db+web.json"


def test_a_file_of_other_services_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "web.json", STATE)
    with pytest.raises(Unusable, match="wanted \\['db'\\]"):
        load(tmp_path / "web.json", ["db"])


@pytest.mark.parametrize(
    ("where", "wrong"),
    [
        (("format",), 2),
        (("format",), None),
        (("as_of",), "yesterday"),
        (("resume_token",), 5),
        (("instances",), 5),
        (("instances", 0), "web-1"),
        (("instances", 0, "service"), "db"),
        (("instances", 0, "uid"), "7"),
        (("instances", 0, "host"), None),
        (("instances", 0, "ports"), {"http": 0}),
        (("instances", 0, "ports"), {"http": 70000}),
        (("instances", 0, "ports"), {"http": True}),
        (("instances", 0, "ports"), {"http": "80"}),
        (("instances", 0, "labels"), {"a": 1}),
        (("instances", 0, "revisions"), [1]),
        (("instances", 0, "surprise"), 1),
    ],
)
def test_a_file_with_a_wrong_field_is_refused(tmp_path: Path, where: tuple[Any, ...], wrong: Any) -> None:
    path = tmp_path / "web.json"
    save(path, STATE)
    document = json.loads(path.read_bytes())
    at = document
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = wrong
    path.write_text(json.dumps(document))
    with pytest.raises(Unusable):
        load(path, ["web"])


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_rubbish_is_refused(tmp_path_factory: pytest.TempPathFactory, rubbish: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "rubbish.json"
    path.write_bytes(rubbish)
    with pytest.raises(Unusable):
        load(path, ["web"])


@settings(deadline=None)
@given(st.integers(0, 400))
def test_a_file_cut_short_is_refused(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.json"
    save(path, STATE)
    whole = path.read_bytes()
    path.write_bytes(whole[: min(length, len(whole) - 1)])
    with pytest.raises(Unusable):
        load(path, ["web"])


def test_a_weight_is_saved_and_the_last_release_reads_files_without_weights(tmp_path: Path) -> None:
    weighed = replace(STATE, instances=(ONE, replace(ONE, id="web-2", weight=0)))
    save(tmp_path / "web.json", weighed)
    assert load(tmp_path / "web.json", ["web"]) == weighed
    first, second = json.loads((tmp_path / "web.json").read_text())["instances"]
    assert "weight" not in first
    assert second["weight"] == 0


@pytest.mark.parametrize("weight", [-1, 1_001, "1", True, 1.5])
def test_a_weight_that_hq_never_sends_makes_a_file_unusable(tmp_path: Path, weight: Any) -> None:
    save(tmp_path / "web.json", replace(STATE, instances=(replace(ONE, weight=1),)))
    document = json.loads((tmp_path / "web.json").read_text())
    document["instances"][0]["weight"] = weight
    (tmp_path / "web.json").write_text(json.dumps(document))
    with pytest.raises(Unusable):
        load(tmp_path / "web.json", ["web"])
