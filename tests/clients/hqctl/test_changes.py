"""apply, diff, delete and single revisions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.hqctl.conftest import Done, Hqctl, documents


@pytest.fixture
def folder(tmp_path: Path, service: str) -> Path:
    """A folder with one document, and another one in a folder in it."""
    (tmp_path / "deeper").mkdir()
    (tmp_path / "a.yaml").write_text(documents(service, "1"))
    (tmp_path / "deeper" / "b.json").write_text(f'{{"meta": {{"id": "{service}-2", "serviceId": "{service}"}}}}')
    (tmp_path / "notes.txt").write_text("no instance")
    return tmp_path


def test_a_folder_is_applied_and_its_subfolders_only_recursively(hqctl: Hqctl, folder: Path, service: str) -> None:
    assert [line[:2] for line in hqctl("apply", "-f", str(folder)).lines] == [[f"{service}-1", "created"]]
    done = hqctl("apply", "-R", "-f", str(folder))
    assert [line[:2] for line in done.lines] == [[f"{service}-1", "unchanged"], [f"{service}-2", "created"]]


@pytest.mark.parametrize("dry_run", ["--dry-run", "--dry-run=server", "--dry-run=client"])
def test_a_dry_run_stores_nothing(hqctl: Hqctl, service: str, dry_run: str) -> None:
    done = hqctl("apply", dry_run, "-f", "-", stdin=documents(service, "1"))
    assert done.code == 0
    assert "(dry run)" in done.out
    assert hqctl("get", f"{service}-1").code == 3


def test_what_a_list_prints_as_json_can_be_applied(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1", "2"))
    shown = hqctl("find", service, "-o", "json").out
    done = hqctl("apply", "-f", "-", stdin=shown)
    assert [line[1] for line in done.lines] == ["unchanged", "unchanged"], done.err


def test_applying_a_deleted_instance_says_to_remove_its_version(hqctl: Hqctl, folder: Path, service: str) -> None:
    file, name = folder / "a.yaml", f"{service}-1"
    hqctl("apply", "-f", str(file))
    file.write_text(hqctl("get", name, "-o", "yaml").out)
    hqctl("delete", name)
    told = f"hqctl: {file}: {name}: there is no instance {name}: remove meta.version to create it.\n"
    applied, compared = hqctl("apply", "-f", str(file)), hqctl("diff", "-f", str(file))
    assert (applied.code, applied.err) == (3, told)
    assert (compared.code, compared.err) == (2, told)


def test_a_conflict_of_versions_is_told_with_one_advice(hqctl: Hqctl, service: str) -> None:
    text = documents(service, "1")
    version = hqctl("apply", "-f", "-", stdin=text).lines[0][-1].rstrip(")")
    done = hqctl("apply", "-f", "-", stdin=text.replace("meta: {", "meta: {version: 1, "))
    told = f"instance {service}-1 is at version {version}, not 1. Get it again and reapply your change,"
    assert (done.code, done.err.count(" again")) == (4, 1)
    assert f"{told} or omit meta.version to overwrite it.\n" in done.err


def test_two_documents_of_one_instance_are_refused_before_anything_is_sent(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    a, b = tmp_path / "a.yaml", tmp_path / "b.yaml"
    a.write_text("meta: {id: w-1}\n---\nmeta: {id: w-2}\n---\nmeta: {id: w-1}\n")
    b.write_text("meta: {id: w-2}\n")
    for dry_run in ("none", "client"):
        done = run("apply", "-f", str(a), "-f", str(b), "-f", str(b), f"--dry-run={dry_run}", HQ_SERVER="127.0.0.1:1")
        assert (done.code, done.out) == (1, "")
        assert done.err.replace(f"{tmp_path}/", "").splitlines() == [
            "hqctl: a.yaml: documents 1 and 3 both describe w-1",
            "hqctl: a.yaml, document 2 and b.yaml both describe w-2",
        ]
    assert f"{b}: is given twice" in run("apply", "-f", str(b), "-f", str(b), HQ_SERVER="127.0.0.1:1").err


def test_diff_shows_what_apply_would_change_and_exits_with_1(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1"))
    change = documents(service, "1").replace("tier: t1", "tier: other")
    done = hqctl("diff", "-f", "-", stdin=change + "---\n" + documents(service, "9"))
    assert done.code == 1
    assert "-    tier: t1\n+    tier: other\n" in done.out
    assert f"{service}-9 does not exist" in done.out
    assert hqctl("get", f"{service}-1", "-o", "jsonpath=.meta.labels.tier").out == "t1\n"


def test_diff_of_an_unchanged_file_is_empty_and_exits_with_0(hqctl: Hqctl, service: str) -> None:
    text = documents(service, "1")
    hqctl("apply", "-f", "-", stdin=text)
    done = hqctl("diff", "-f", "-", stdin=text)
    assert (done.code, done.out) == (0, "")


def test_diff_of_something_faulty_exits_with_more_than_1(hqctl: Hqctl) -> None:
    assert hqctl("diff", "-f", "-", stdin="meta: {id: 1}").code == 2
    done = hqctl("diff", "-f", "-", stdin="meta: {id: 'no/slash'}")
    assert done.code == 2
    assert "no/slash: id:" in done.err


def test_delete_by_options_needs_the_flag_yes_without_a_terminal(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1", "2", "3"))
    refused = hqctl("delete", "--service", service)
    assert refused.code == 1
    assert "--yes" in refused.err
    assert hqctl("delete", "--service", service, "-l", "tier=t2", "--dry-run").lines[0][0] == f"{service}-2"
    done = hqctl("delete", "--service", service, "-l", "tier=t2", "--yes")
    assert done.out == f"{service}-2 deleted\n"
    assert hqctl("find", service, "-o", "name").out == f"{service}-1\n{service}-3\n"


def test_delete_by_file_works_and_a_second_deletion_is_not_found(hqctl: Hqctl, service: str) -> None:
    text = documents(service, "1", "2")
    hqctl("apply", "-f", "-", stdin=text)
    assert hqctl("delete", "-f", "-", stdin=text).code == 0
    assert hqctl("delete", f"{service}-1").code == 3
    assert hqctl("delete", f"{service}-1", "--ignore-not-found").code == 0


def test_a_dry_run_of_a_deletion_ends_as_the_deletion_would(hqctl: Hqctl, service: str) -> None:
    text = documents(service, "1")
    hqctl("apply", "-f", "-", stdin=text)
    assert hqctl("delete", "--dry-run", f"{service}-1").out == f"{service}-1 would be deleted\n"
    late = hqctl("delete", "--dry-run", "--version", "1", "-f", "-", stdin=text)
    assert (late.code, "not 1" in late.err) == (4, True)
    assert hqctl("delete", "--dry-run", f"{service}-2").code == 3
    assert hqctl("delete", "--dry-run", "--ignore-not-found", f"{service}-2").code == 0
    assert hqctl("get", f"{service}-1").code == 0


def test_delete_of_nothing_in_particular_is_a_mistake(hqctl: Hqctl) -> None:
    assert hqctl("delete").code == 2
    assert hqctl("delete", "a", "--all").code == 2


def test_a_revision_is_put_activated_shown_and_removed(hqctl: Hqctl, service: str) -> None:
    name = f"{service}-1"
    hqctl("apply", "-f", "-", stdin=documents(service, "1"))
    secret = "[{name: db, provider: vault, id: x, environmentVariable: DB}]"
    put = hqctl("revision", "put", name, "-f", "-", stdin=f"{{id: r2, secret: {secret}}}")
    assert put.code == 0, put.err
    assert hqctl("revision", "activate", name, "r2").code == 0
    rows = {line[0]: line for line in hqctl("revision", "show", name).lines}
    assert [rows[one][1] for one in ("r0", "r1", "r2")] == ["INSTALLED", "INSTALLED", "READY"]
    assert rows["r2"][-1] == "1"  # activating keeps the secrets
    assert hqctl("revision", "delete", name, "r0").code == 0
    gone = hqctl("revision", "activate", name, "r0")
    assert (gone.code, gone.err) == (3, f"hqctl: instance {name} has no revision r0; it has r1, r2.\n")


def test_what_revision_show_prints_as_yaml_can_be_put(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1"))
    shown = hqctl("revision", "show", f"{service}-1", "r1", "-o", "yaml").out
    done = hqctl("revision", "put", f"{service}-1", "-f", "-", stdin=shown.replace("id: r1", "id: r7"))
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("target: READY", "target: 'READY' is not a valid value; did you mean REVISION_TARGET_READY?"),
        ("target: REVISION_TARGET_READY", "id: is missing; every revision needs a name"),
        ("id: a/b", 'revision.id: "a/b" is malformed'),
        ("meta: {id: web-1}", "this is an instance; give one of its revisions (an item of spec.revision)\n"),
        ("{id: r1, spec: {}}", "this is an instance; give one of its revisions (an item of spec.revision)\n"),
        ("[{id: r1}, {id: r2}]", "must hold one revision (with id and target)\n"),
    ],
)
def test_a_fault_of_a_revision_is_told_with_its_file(hqctl: Hqctl, folder: Path, text: str, told: str) -> None:
    (folder / "r.yaml").write_text(text)
    done = hqctl("revision", "put", "web-1", "-f", str(folder / "r.yaml"))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"hqctl: {folder}/r.yaml: {told}")


def test_a_weight_is_set_shown_and_taken_away_and_nothing_else_changes(hqctl: Hqctl, service: str) -> None:
    hqctl("apply", "-f", "-", stdin=documents(service, "1", "2"))
    before = hqctl("get", f"{service}-1", "-o", "jsonpath={.spec.revision}").out
    assert f"{service}-1 set (version" in hqctl("set", f"{service}-1", f"{service}-2", "weight=0").out
    wide = hqctl("get", f"{service}-1", "-o", "wide").lines
    assert wide[1][wide[0].index("WEIGHT")] == "0"
    assert hqctl("get", f"{service}-1", "-o", "jsonpath={.spec.revision}").out == before
    hqctl("set", f"{service}-1", "weight=")
    assert "weight" not in hqctl("get", f"{service}-1", "-o", "json").out
    assert '"weight": 0' in hqctl("get", f"{service}-2", "-o", "json").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("web-1",), "weight=NUMBER"),
        (("weight=1",), "name at least one instance"),
        (("web-1", "weight=many"), "weight: many is not a number from 0 to 1000"),
        (("web-1", "node=a"), "node: not an attribute that can be set"),
    ],
)
def test_what_cannot_be_set_is_refused_before_hq_is_asked(hqctl: Hqctl, words: tuple[str, ...], said: str) -> None:
    done = hqctl("set", *words)
    assert done.code == 2
    assert said in done.err


def test_a_weight_out_of_range_is_refused_by_hq(hqctl: Hqctl, service: str) -> None:
    done = hqctl("set", f"{service}-1", "weight=1001")
    assert done.code == 1
    assert "spec.weight: 1001 is out of range" in done.err
