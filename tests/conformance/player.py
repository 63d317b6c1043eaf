"""Plays one scenario: tells the scripted HQ what to say, and compares what the client under test shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.conformance.client_process import ClientProcess
from tests.conformance.messages import CLUSTER, expand
from tests.conformance.scenarios import MESSAGES, Scenario, ScenarioStep
from tests.conformance.scripted_hq import ScriptedHq
from tests.support.certificates import Authority

SETTINGS: Final = {  # in milliseconds; docs/client-conformance.md says what each means
    "silence_ms": 60_000,
    "stale_ms": 60_000,
    "connect_ms": 20_000,
    "retry_ms": 50,
    "refused_ms": 20,
    "save_ms": 10,
    "believe_ms": 3_600_000,
    "renew_ms": 3_600_000,
}
WITHIN_S: Final = 15.0
_LOOK_EVERY_S: Final = 0.01


class ScenarioFailed(AssertionError):
    """The client did not show what the scenario expects; str() says what it showed instead."""


class Player:
    """One run of one scenario with one client."""

    def __init__(self, scenario: Scenario, client: ClientProcess, folder: Path, within_s: float = WITHIN_S) -> None:
        """`folder`: an empty one, for the client's files."""
        self._scenario, self._client, self._within_s = scenario, client, within_s
        self._folder, self._state_dir = folder, folder / "state"
        self._lists: list[list[str]] = []
        self._remembered: dict[str, bytes] = {}
        self._hq = ScriptedHq(scenario.replicas)
        self._is_open = False

    async def play(self) -> None:
        """Play all steps. Raises ScenarioFailed, ClientDied."""
        if self._scenario.feature == "tls":
            self._issue_certificates()
        if self._scenario.feature == "identity":
            self._renew_token("t1")
        await self._hq.start()
        try:
            if self._scenario.opens:
                await self._open()
            for step in self._scenario.steps:
                try:
                    await self._run(step)
                except TimeoutError:
                    raise ScenarioFailed(f"at {step}: no stream came; the client shows {await self._state()}") from None
            await self._close()
        finally:
            await self._hq.stop()

    async def _run(self, step: ScenarioStep) -> None:
        if step.verb in MESSAGES or step.verb in ("cut", "end", "refuse"):
            await self._hq.send(step, self._within_s)
        elif step.verb == "next":
            self._hq.scripts.append(step.what)
        elif step.verb in ("stop", "start", "mute"):
            for replica in self._hq.replica(step.what):
                await getattr(replica, step.verb)()
        elif step.verb == "freeze":
            for replica in self._hq.replica(step.what):
                replica.is_frozen = True
        else:
            await _ACTIONS[step.verb](self, step)

    # --- what the client is told to do ------------------------------------------------------------------------

    async def _open(self, step: ScenarioStep | None = None) -> None:
        scenario, folder = self._scenario, self._folder
        words: dict[str, Any] = {"servers": [replica.address for replica in self._hq.replicas]}
        if scenario.feature == "file":
            words["state_dir"] = str(self._state_dir)
        if scenario.feature == "identity":
            words["token_file"] = str(folder / "token")
        if scenario.feature == "tls":
            files = {"ca": "authority.crt", "cert": "client.crt", "key": "client.key"}
            words.update((name, str(folder / file)) for name, file in files.items())
        self._lists = []
        await self._client.ask("open", service="web", port="http", settings={**SETTINGS, **scenario.settings}, **words)
        self._is_open = True

    async def _close(self, step: ScenarioStep | None = None) -> None:
        if self._is_open:
            self._is_open = False
            await self._client.ask("close")

    async def _kill(self, step: ScenarioStep) -> None:
        self._is_open = False
        await self._client.kill()

    # --- what is compared -------------------------------------------------------------------------------------

    async def _state(self) -> dict[str, Any]:
        state = await self._client.ask("state")
        state["list"] = _names(state["endpoints"])
        state["weights"] = " ".join(sorted(f"{each['id']}={each.get('weight')}" for each in state["endpoints"]))
        self._lists += [_names(shown) for shown in state.pop("lists")]
        return state

    async def _expect(self, step: ScenarioStep) -> None:
        end = time.monotonic() + self._within_s
        while wrong := _differences(await self._state(), step.what):
            if time.monotonic() > end:
                raise ScenarioFailed(f"at {step}: {'; '.join(wrong)}")
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _shown(self, step: ScenarioStep) -> None:
        """The lists that came one after the other. Some may be left out, the last may not; no other may come."""
        wanted = [sorted(expand(words)) for words in step.what]
        end = time.monotonic() + self._within_s
        while True:
            await self._state()
            shown = [entry for n, entry in enumerate(self._lists) if entry or any(self._lists[:n])]
            if shown and shown[-1] == wanted[-1]:
                break
            if time.monotonic() > end:
                raise ScenarioFailed(f"at {step}: the last list was never shown, but {shown}")
            await asyncio.sleep(_LOOK_EVERY_S)
        rest = iter(wanted)
        last: list[str] | None = None
        for entry in shown:
            if entry != last and entry not in rest:
                raise ScenarioFailed(f"at {step}: {entry} was shown, in {shown}")
            last = entry

    async def _stream(self, step: ScenarioStep) -> None:
        """A new watch came: where, with which token, and not before its time."""
        before = self._hq.streams[-1] if self._hq.streams else None
        began = time.monotonic()
        stream = await self._hq.next_stream(self._within_s)
        wanted = step.what or {}
        found = {
            "token": stream.request.resume_token,
            "at": "first" if stream.replica is self._hq.streams[0].replica else "another",
            "service": " ".join(stream.request.filter.service_id),
            "authorization": stream.authorization,
        }
        for name in found.keys() & wanted.keys():
            if found[name] != str(wanted[name] or ""):
                raise ScenarioFailed(f"at {step}: the watch came with {name} {found[name]!r}")
        waited = stream.at - min(began, before.at if before else began)
        if "not_before_s" in wanted and waited < wanted["not_before_s"]:
            raise ScenarioFailed(f"at {step}: the watch came after {waited:.3f} s")

    # --- files and identities ---------------------------------------------------------------------------------

    def _renew_token(self, token: str) -> None:
        (self._folder / "token").write_text(token + "\n")
        self._hq.accepted_token = token

    async def _next_token(self, step: ScenarioStep) -> None:
        self._renew_token(str(step.what))

    def _issue_certificates(self) -> None:
        """A new authority, and all certificates from it, in the files that were there before."""
        authority = Authority(self._folder)
        server = authority.issue("server")
        authority.issue("client")
        self._hq.certificate = server.key.read_bytes(), server.cert.read_bytes(), authority.cert.read_bytes()

    async def _renew_certificates(self, step: ScenarioStep) -> None:
        self._issue_certificates()

    def _files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self._state_dir.rglob("*") if path.is_file()}

    async def _damage_files(self, step: ScenarioStep) -> None:
        if not self._files():
            raise ScenarioFailed(f"at {step}: the client saved nothing in its state_dir")
        for name in self._files():
            (self._state_dir / name).write_text("{")

    async def _remember_files(self, step: ScenarioStep) -> None:
        self._remembered = self._files()

    async def _same_files(self, step: ScenarioStep) -> None:
        if self._files() != self._remembered:
            raise ScenarioFailed(f"at {step}: the client wrote over a list that was newer than its own")

    async def _wait(self, step: ScenarioStep) -> None:
        await asyncio.sleep(step.what)


_ACTIONS: Final[Mapping[str, Callable[[Player, ScenarioStep], Any]]] = {
    "open": Player._open,
    "close": Player._close,
    "kill": Player._kill,
    "expect": Player._expect,
    "shown": Player._shown,
    "stream": Player._stream,
    "renew_token": Player._next_token,
    "renew_certificates": Player._renew_certificates,
    "damage_files": Player._damage_files,
    "remember_files": Player._remember_files,
    "same_files": Player._same_files,
    "wait_s": Player._wait,
}


def _names(endpoints: Sequence[Mapping[str, Any]]) -> list[str]:
    """`id@address`, with the cluster before it if that is another than the usual one."""
    prefix = {CLUSTER: "", "": ""}
    names = [f"{prefix.get(e['cluster'], e['cluster'] + '/')}{e['id']}@{e['address']}" for e in endpoints]
    return sorted(name.removesuffix("@127.0.0.1:80") for name in names)


def _differences(state: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """What the client shows otherwise than it should. `error`, `doubt`: whether there is one; `age_s`: at least."""
    wrong = []
    for name, value in wanted.items():
        found: Any = state.get(name)
        if name == "list":
            is_right = found == sorted(expand(str(value)))
        elif name in ("error", "doubt"):
            is_right = bool(found) == value
        elif name == "age_s":
            is_right = found is None if value == "unknown" else found is not None and found >= value
        elif name == "age_below_s":
            found = state.get("age_s")
            is_right = found is not None and found < value
        elif name == "zone":
            found = sorted({e.get("labels", {}).get("zone") for e in state["endpoints"]})
            is_right = found == [value]
        else:
            is_right = found == value
        if not is_right:
            wrong.append(f"{name} is {found!r}, should be {value!r}")
    return wrong
