"""A Prometheus that answers a few queries from a table, in the shape of its HTTP API; without a process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

import httpx

from control.outgoing import OutgoingHttp
from nanny.world.prometheus import PrometheusPort, PrometheusSource

URL: Final = "http://prometheus.test:9090"


def vector(*values: str) -> dict[str, Any]:
    """The data of an instant query."""
    found = [{"metric": {"n": str(n)}, "value": [1.0, value]} for n, value in enumerate(values)]
    return {"resultType": "vector", "result": found}


ANSWERS: Final[Mapping[str, dict[str, Any]]] = {
    "vector(1)": vector("1"),
    "42": {"resultType": "scalar", "result": [1.0, "42"]},
    "0 / 0": {"resultType": "scalar", "result": [1.0, "NaN"]},
    "vector(1) / 0": vector("+Inf"),
    "absent_metric": vector(),
    "vector(1)[5m:1m]": {"resultType": "matrix", "result": []},
    '"text"': {"resultType": "string", "result": [1.0, "text"]},
}
"""What any Prometheus answers; what is not here is a fault."""


class PrometheusStandIn(httpx.AsyncBaseTransport):
    """`answers`: by query; `asked`: all queries, `headers` and `parameters` (of the URL) those of the last."""

    def __init__(self, answers: Mapping[str, dict[str, Any]] = ANSWERS) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        self.headers: Mapping[str, str] = {}
        self.parameters: Mapping[str, list[str]] = {}
        self.is_down = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_down:
            raise httpx.ConnectError("refused")
        assert (request.method, request.url.path) == ("POST", "/api/v1/query")
        query = parse_qs((await request.aread()).decode())["query"][0]
        self.asked.append(query)
        self.headers = request.headers
        self.parameters = parse_qs(request.url.query.decode())
        if query not in self.answers:
            fault = {"status": "error", "errorType": "bad_data", "error": "1:5: parse error: unexpected end of input"}
            return httpx.Response(400, content=json.dumps(fault).encode())
        return httpx.Response(200, content=json.dumps({"status": "success", "data": self.answers[query]}).encode())

    def port(self, token_file: str = "") -> PrometheusPort:
        """One that knows it as `main`."""
        return PrometheusPort({"main": PrometheusSource(URL, token_file)}, OutgoingHttp(self))
