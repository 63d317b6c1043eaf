"""edit: an editor that is a program of the test."""

from __future__ import annotations

import asyncio
import re
import stat
from pathlib import Path

import pytest

from hqclient.client import Client, HqApiError
from hqctl.commands.editing import store
from tests.clients.deeds import Code, refuse
from tests.clients.fake_hq import FakeReplica, instance
from tests.clients.hqctl.conftest import Done, Hqctl, documents


class Editor:
    """Writes scripts that stand for a person with an editor."""

    def __init__(self, folder: Path, hqctl: Hqctl, name: str) -> None:
        self._folder, self._hqctl, self._name = folder, hqctl, name

    def edit(self, script: str) -> Done:
        """Run `hqctl edit` with an editor that runs a shell script over the file, which is in $1."""
        editor = self._folder / "editor"
        editor.write_text(f"#!/bin/sh\n{script}\n")
        editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
        return self._hqctl("edit", self._name, EDITOR=str(editor), VISUAL=str(editor), TMPDIR=str(self._folder))

    def label(self, key: str) -> str:
        return self._hqctl("get", self._name, "-o", f"jsonpath=.meta.labels.{key}").out.strip()


@pytest.fixture
def person(hqctl: Hqctl, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    hqctl("apply", "-f", "-", stdin=documents(service, "1"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return Editor(tmp_path, hqctl, f"{service}-1")


def meanwhile(server: str, name: str, python: str, change: str) -> str:
    """A line of shell with which somebody else changes the instance."""
    command = f"{python} -m hqctl.main --server {server}"
    return f"{command} get {name} -o yaml | sed '{change}' | {command} apply -f - >/dev/null"


def kept_in(done: Done) -> str:
    found = re.search(r"kept in (\S+\.yaml);", done.err)
    assert found is not None, done.err
    return Path(found[1]).read_text()


def test_an_edit_is_stored(person: Editor, tmp_path: Path) -> None:
    done = person.edit("sed -i 's/tier: t1/tier: edited/' $1")
    assert done.code == 0, done.err
    assert person.label("tier") == "edited"
    assert not list(tmp_path.glob("hqctl-*"))


def test_a_removed_label_is_gone(person: Editor) -> None:
    person.edit("sed -i '/labels:/d; /tier: t1/d' $1")
    assert person.label("tier") == ""


def test_leaving_without_a_change_stores_nothing(person: Editor, tmp_path: Path) -> None:
    done = person.edit("true")
    assert (done.code, done.err) == (0, "No changes: nothing was stored.\n")
    assert not list(tmp_path.glob("hqctl-*"))


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("sed -i 's/labels:/lables:/' $1", "did you mean labels"),
        ("sed -i 's/id: .*-1/id: other/' $1", "cannot be renamed"),
        ('sed -i \'s/  id: r0/  id: "a b"/; s/- id: r0/- id: "a b"/\' $1', "revision"),
        ("echo '{' >> $1", "line"),
    ],
)
def test_an_edit_that_cannot_be_stored_is_kept_in_a_file_that_the_error_names(
    person: Editor, script: str, told: str
) -> None:
    done = person.edit(script)
    assert done.code == 1
    assert told in done.err
    assert "meta:" in kept_in(done)


def test_what_somebody_else_changed_meanwhile_is_kept_too(
    person: Editor, server: str, service: str, environment: str
) -> None:
    theirs = meanwhile(server, f"{service}-1", environment, "s/node-a/node-b/")
    done = person.edit(f"{theirs}\nsed -i 's/tier: t1/tier: mine/' $1")
    assert done.code == 0, done.err
    assert "changed meanwhile" in done.err
    assert person.label("tier") == "mine"


def test_a_field_that_two_people_changed_is_a_conflict_that_shows_both_values(
    person: Editor, server: str, service: str, environment: str
) -> None:
    theirs = meanwhile(server, f"{service}-1", environment, "s/tier: t1/tier: theirs/; s/node-a/node-b/")
    done = person.edit(f"{theirs}\nsed -i 's/tier: t1/tier: mine/' $1")
    assert done.code == 4
    assert "meta.labels.tier" in done.err
    kept = kept_in(done)
    assert "tier: mine" in kept
    assert "# +    tier: theirs" in kept
    assert "nodeName: node-b" in kept  # what does not contradict is in it already
    assert person.label("tier") == "theirs"


async def test_a_conflict_after_which_the_newer_version_cannot_be_read_ends_the_edit(
    replicas: list[FakeReplica], client: Client
) -> None:
    base = (await client.create(instance("web-1"))).instance
    for replica in replicas:
        version = {"current_version": str(base.meta.version)}
        replica.order("UpdateInstance", refuse(Code.ABORTED, "VERSION_CONFLICT", "cannot be read", metadata=version))
    with pytest.raises(HqApiError, match="cannot be read"):
        await asyncio.wait_for(store(client, base, base), 60)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> str:
    """The interpreter, with variables for commands that the editor runs."""
    import sys

    from tests.clients.hqctl.conftest import clean_environment

    for key in ("PYTHONPATH", "HQ_CONFIG"):
        monkeypatch.setenv(key, clean_environment()[key])
    return sys.executable
