"""Merging the changes of two people to one instance."""

from __future__ import annotations

from typing import Any

import pytest

from hqctl.manifests.merging import Contradiction, merge_three_way

BASE: dict[str, Any] = {
    "meta": {"labels": {"tier": "front", "engine": "php"}},
    "spec": {"node": "a", "revision": [{"id": "r0", "target": "INSTALLED"}, {"id": "r1", "target": "READY"}]},
}


def changed(**parts: Any) -> dict[str, Any]:
    return {**BASE, **parts}


def test_changes_of_different_fields_are_both_kept() -> None:
    ours = changed(meta={"labels": {"tier": "back", "engine": "php"}})
    theirs = changed(meta={"labels": {"tier": "front", "engine": "go"}})
    assert merge_three_way(BASE, ours, theirs)["meta"]["labels"] == {"tier": "back", "engine": "go"}


def test_labels_removed_by_one_person_and_added_by_the_other_are_merged() -> None:
    ours = changed(meta={"labels": {"tier": "front"}})
    theirs = changed(meta={"labels": {"tier": "front", "engine": "php", "new": "1"}})
    assert merge_three_way(BASE, ours, theirs)["meta"]["labels"] == {"tier": "front", "new": "1"}


def test_the_same_change_by_both_is_no_contradiction() -> None:
    same = changed(spec={"node": "b"})
    assert merge_three_way(BASE, same, same) == same


def test_lists_whose_items_have_an_id_are_merged_by_id() -> None:
    ours = changed(spec={**BASE["spec"], "revision": [BASE["spec"]["revision"][1]]})  # r0 removed
    r1 = {"id": "r1", "target": "INSTALLED"}
    theirs = changed(
        spec={**BASE["spec"], "revision": [BASE["spec"]["revision"][0], r1, {"id": "r2", "target": "READY"}]}
    )
    assert merge_three_way(BASE, ours, theirs)["spec"]["revision"] == [r1, {"id": "r2", "target": "READY"}]


def test_the_same_field_changed_by_both_is_a_contradiction_named_by_its_path() -> None:
    ours = changed(meta={"labels": {"tier": "mine", "engine": "php"}})
    theirs = changed(meta={"labels": {"tier": "theirs", "engine": "go"}}, spec={"node": "z"})
    with pytest.raises(Contradiction) as caught:
        merge_three_way(BASE, ours, theirs)
    assert caught.value.fields == ["meta.labels.tier"]
    assert caught.value.ours_first == {"meta": {"labels": {"tier": "mine", "engine": "go"}}, "spec": {"node": "z"}}


def test_a_field_removed_by_one_and_changed_by_the_other_is_a_contradiction() -> None:
    ours = changed(meta={"labels": {"engine": "php"}})
    theirs = changed(meta={"labels": {"tier": "theirs", "engine": "php"}})
    with pytest.raises(Contradiction, match=r"meta\.labels\.tier"):
        merge_three_way(BASE, ours, theirs)
