"""The API as a site: authentication, blocking, the answer and its headers."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections import Counter
from typing import Final

from gateways.consul.answers import ConsulAnswers
from gateways.consul.indexes import ConsulIndexes
from gateways.consul.questions import OF_AN_AGENT, ConsulError, Question, read_question
from gateways.picture.picture import EndpointView
from serving import error_statuses
from serving.auth.call_guard import CallGuard
from serving.calls.methods import Call
from serving.context import ServerContext
from serving.errors import ServiceError
from serving.rights.access import UNCHECKED, Access
from serving.rights.reach import Of, narrowed_reach
from serving.rights.rules import READ
from serving.standard.site import SiteAnswer, SiteRequest

_BEHIND_WAIT_S: Final = 5.0  # for what a caller has from another gateway, while this one may be behind
_JITTER: Final = 16  # as in Consul, a wait is up to a sixteenth longer, so that clients do not all come back at once
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_JSON: Final = (b"content-type", b"application/json")
_DENIED: Final = (401, 403)
_STATUSES: Final = {"passing": 200, "warning": 429, "critical": 503}  # of /v1/agent/health


class ConsulApi:
    """Answers requests.

    Attributes:
        answered: by kind of question and status.
        woken: blocking queries that ended because of a change; timed_out: because of their timeout.
    """

    def __init__(
        self,
        picture: EndpointView,
        of: ConsulIndexes,
        answers: ConsulAnswers,
        shared: ServerContext,
        rng: random.Random,
    ) -> None:
        self._picture, self._indexes, self._answers, self._rng = picture, of, answers, rng
        self._gate = shared.security.gate if shared.security is not None else None
        self._guard: CallGuard = shared.guard("/v1", READ, narrowed_reach(Of.INSTANCE))
        self._admission = shared.admission
        self.answered: Counter[tuple[str, str]] = Counter()
        self.woken = self.timed_out = 0

    @property
    def waiting(self) -> int:
        """Blocking queries that are waiting."""
        return self._indexes.waiting

    async def answer(self, request: SiteRequest) -> SiteAnswer:
        """Answer a request: the site's entry point for `serving`."""
        kind = "none"
        try:
            question = read_question(request.method, request.path, request.query_string)
            kind = question.kind.name.lower()
            access = self._caller_access(request)
            if question.may_wait:
                await self._wait(question, access, request.call)
                access = self._caller_access(request)
            answer = self._render_answer(question, access)
        except ConsulError as refused:
            answer = self._sentence(refused.status, str(refused))
        except ServiceError as error:
            answer = self._error_answer(error, request.call)
        self.answered[kind, str(answer.status)] += 1
        return answer

    def _caller_access(self, request: SiteRequest) -> Access:
        """The caller and what it may see: X-Consul-Token holds an HQ token. Raises ServiceError."""
        call = request.call
        token = request.headers.get(b"x-consul-token", b"").decode("latin-1")
        if self._gate is None or self._guard.admit is None:
            return UNCHECKED
        if not token or self._gate.tokens is None:
            self._guard.admit(call)
            return call.access
        call.set_access(self._gate.access(self._gate.identify_token(token), READ))
        return call.access

    async def _wait(self, question: Question, access: Access, call: Call) -> None:
        """Wait until the answer changes. Waiting requests count as open streams. Raises ServiceError, ConsulError."""
        host, wait_s = call.host, self._wait_s(question)
        if not wait_s:
            return
        self._admission.open_stream(host)
        try:
            async with asyncio.timeout(wait_s * (1.0 + self._rng.random() / _JITTER)):
                await self._wait_for_change(question, access)
            self.woken += 1
        except TimeoutError:
            self.timed_out += 1
        finally:
            self._admission.close_stream(host)

    def _wait_s(self, question: Question) -> float:
        """How long to wait for a change; 0: the caller has another answer than the current one."""
        topic, index = self._answers.topic(question), question.index
        if self._indexes.is_current(topic, index):
            return question.wait_s
        # Another gateway may know more. Where two differ, no caller must go to and fro between them at full speed.
        is_behind = self._picture.condition.stale or bool(self._picture.missing)
        is_newer = index > self._indexes.current(topic)
        return min(question.wait_s, _BEHIND_WAIT_S) if is_behind and is_newer else 0.0

    async def _wait_for_change(self, question: Question, access: Access) -> None:
        """Wait for a real change: the index also moves for other questions on the service, e.g. about another tag."""
        topic, before = self._answers.topic(question), self._answers.body(question, access)
        while self._answers.body(question, access) == before:
            await self._indexes.wait_for_change(topic)

    def _render_answer(self, question: Question, access: Access) -> SiteAnswer:
        body = self._answers.body(question, access)
        if question.pretty:
            body = json.dumps(json.loads(body), indent=4, ensure_ascii=False).encode("utf-8", "surrogatepass")
        status, kind = 200, _JSON
        if question.kind in OF_AN_AGENT:
            worst = self._answers.worst_status(question, access)
            status = _STATUSES[worst]
            body, kind = (worst.encode(), _TEXT) if question.is_text else (body, kind)
        index = self._indexes.index_to_answer(self._answers.topic(question), question.index)
        return SiteAnswer(status, [kind, (b"x-consul-index", b"%d" % index), *self._contact()], body)

    def _contact(self) -> list[tuple[bytes, bytes]]:
        """How old the answer is. A working watch counts as contact, however little happens."""
        condition = self._picture.condition
        age_s = condition.age_s if condition.stale else 0.0
        age_ms = round(age_s * 1000) if math.isfinite(age_s) else 2**31
        leader = b"false" if condition.stale else b"true"
        fields = [(b"x-consul-lastcontact", b"%d" % age_ms), (b"x-consul-knownleader", leader)]
        if missing := self._picture.missing:
            fields.append((b"x-hq-missing-locations", ",".join(sorted(missing)).encode()))
        return fields

    def _error_answer(self, error: ServiceError, call: Call) -> SiteAnswer:
        self._admission.count(error)
        self._guard.on_call_refused(call, error)
        status = error_statuses.http_status(error)
        return self._sentence(403 if status in _DENIED else status, str(error))

    def _sentence(self, status: int, words: str) -> SiteAnswer:
        contact = self._contact() if status == 500 else []
        return SiteAnswer(status, [_TEXT, *contact], f"{words}\n".encode("utf-8", "replace"))
