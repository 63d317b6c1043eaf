"""The example for Kubernetes: two of its processes before an API server that checks objects by Kubernetes' OpenAPI."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.judges import tools
from tests.judges.gateway_world import within
from tests.judges.processes import ROOT, started
from tests.judges.verdict import Verdict
from tests.support.gateway_process import Registry, programs

Json = dict[str, Any]
_EXAMPLE: Final = ROOT / "examples/gateways/kubernetes"
_LABELS: Final = {"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "hq-endpointslices"}
_LEASE: Final = "leases/web-hq"
_MANY: Final = 250
_TAKEN_OVER_S: Final = 60.0  # 15 s of the lease, on a machine that does something else, too
_CASE_S: Final = 180.0
_QUIET_S: Final = 3.0


class OpenApi:
    """What Kubernetes says of its objects, in the files that its module carries."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, made: Json) -> None:
        """Raises AssertionError: a word is not one of Kubernetes', or is missing, or has another type."""
        group, _, version = made["apiVersion"].rpartition("/")
        schemas = _schemas(self._folder / (f"apis__{group}__v1_openapi.json" if group else "api__v1_openapi.json"))
        kind = {"group": group, "version": version, "kind": made["kind"]}
        [schema] = [one for one in schemas.values() if [kind] == one.get("x-kubernetes-group-version-kind")]
        _check(schemas, schema, made, made["kind"])


@cache
def _schemas(path: Path) -> Mapping[str, Json]:
    found: Mapping[str, Json] = json.loads(path.read_text())["components"]["schemas"]
    return found


_TYPES: Final = {"string": str, "integer": int, "boolean": bool, "number": float, "array": list, "object": dict}


def _check(schemas: Mapping[str, Json], schema: Json, made: Any, at: str) -> None:
    for reference in (schema, *schema.get("allOf", ())):
        if "$ref" in reference:
            _check(schemas, schemas[reference["$ref"].rpartition("/")[2]], made, at)
    expected: Any = _TYPES.get(schema.get("type", ""), object)
    assert isinstance(made, expected), f"{at} is not of type {schema['type']}"
    if "properties" in schema:
        words = {*made}
        assert {*schema.get("required", ())} <= words <= {*schema["properties"]}, f"{at}: {sorted(words)}"
    if isinstance(made, dict):
        for name, value in made.items():
            inner = schema.get("properties", {}).get(name) or schema.get("additionalProperties") or {}
            _check(schemas, inner, value, f"{at}.{name}")
    elif isinstance(made, list):
        for number, value in enumerate(made):
            _check(schemas, schema.get("items", {}), value, f"{at}[{number}]")


class ApiServer:
    """Slices and leases in memory. What is refused is kept, for the verdict."""

    def __init__(self, openapi: OpenApi) -> None:
        self._openapi, self._lock, self._version = openapi, threading.Lock(), 0
        made = {"name": "web-hq", "resourceVersion": "0"}  # nobody holds it
        self.objects: dict[str, Json] = {
            _LEASE: {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": made}
        }
        self.refused: list[str] = []
        self.lists = 0

    @property
    def holder(self) -> str:
        """Who holds the lease."""
        return str(self.objects[_LEASE].get("spec", {}).get("holderIdentity"))

    @property
    def renewals(self) -> int:
        """The number of the lease's last writing."""
        return int(self.objects[_LEASE]["metadata"]["resourceVersion"])

    def places(self) -> set[str]:
        """All addresses of all slices, each with its port."""
        with self._lock:
            kept = [one for path, one in self.objects.items() if path.startswith("endpointslices/")]
        return {
            f"{address}:{one['ports'][0]['port']}"
            for one in kept
            for endpoint in one["endpoints"]
            for address in endpoint["addresses"]
        }

    def answer(self, method: str, path: str, query: str, body: Json | None) -> tuple[int, Json]:
        """Status and body, as an API server has them."""
        with self._lock:
            try:
                return self._answer(method, path, query, body)
            except AssertionError as error:
                self.refused.append(f"{method} {path}: {error}"[:300])
                return 422, {}

    def _answer(self, method: str, path: str, query: str, body: Json | None) -> tuple[int, Json]:
        if body is not None:
            return self._write(method, path, body)
        if "/" not in path:
            self.lists += 1
            assert parse_qs(query)["labelSelector"] == [",".join(f"{k}={v}" for k, v in _LABELS.items())]
            return 200, {"items": [one for key, one in self.objects.items() if key.startswith(path)]}
        if path not in self.objects:
            return 404, {}
        return 200, self.objects.pop(path) if method == "DELETE" else self.objects[path]

    def _write(self, method: str, path: str, body: Json) -> tuple[int, Json]:
        self._openapi.check(body)
        if body["kind"] == "EndpointSlice":
            _check_slice(body)
        path = f"{path}/{body['metadata']['name']}" if method == "POST" else path
        kept = self.objects.get(path, {"metadata": {}})["metadata"].get("resourceVersion")
        # A PATCH is a server-side apply by one manager who has all fields.
        if method != "PATCH" and kept != body["metadata"].get("resourceVersion"):
            return 409, {}
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = body
        return 200, body


def _check_slice(made: Json) -> None:
    """What Kubernetes checks besides the schema, and the design's bounds."""
    assert made["metadata"]["labels"] == _LABELS
    assert 0 < len(made["endpoints"]) <= 100
    assert len(made["ports"]) == 1
    for endpoint in made["endpoints"]:
        [address] = map(ipaddress.ip_address, endpoint["addresses"])
        assert made["addressType"] == f"IPv{address.version}"
        refused = (address.is_loopback, address.is_link_local, address.is_unspecified, address.is_multicast)
        assert not any(refused), address


@contextmanager
def _listening(api: ApiServer) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            where = urlsplit(self.path)
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            path = where.path.partition("/namespaces/shop/")[2]
            status, said = api.answer(self.command, path, where.query, body)
            text = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def kubernetes(directory: Path) -> Verdict:
    """Its manifests; growth, two writers of which one dies, and HQ away."""
    folder, version = await tools.kubernetes()
    openapi, verdict = OpenApi(folder / "api/openapi-spec/v3"), Verdict(version)
    for made in yaml.safe_load_all((_EXAMPLE / "web.yaml").read_text()):
        await verdict.case(f"{made['kind']} {made['metadata']['name']}", asyncio.to_thread(openapi.check, made))
    api = ApiServer(openapi)
    async with AsyncExitStack() as stack:
        url = stack.enter_context(_listening(api))
        running = await stack.enter_async_context(programs(directory))
        hq = await running.registry()
        await hq.put("web-0", host="10.0.0.1")
        await hq.put("here", host="127.0.0.1")
        writers = {}
        for name in "ab":
            env = {"KUBERNETES_URL": url, "NAMESPACE": "shop", "HQ_SERVER": hq.grpc, "HOSTNAME": name}
            order = (sys.executable, "-u", _EXAMPLE / "endpointslices.py", "web", "http", "web")
            writers[name] = await stack.enter_async_context(started(order, directory / f"{name}.log", env))
        await verdict.case("a service is there, without loopback", _shows(api, {"10.0.0.1:80"}), _CASE_S)
        await verdict.case(f"1 to {_MANY} to 1, and no slice over 100", _growth(api, hq), _CASE_S)
        await verdict.case("the other one writes when the writer dies", _take_over(api, hq, writers), _CASE_S)
        await verdict.case("HQ away changes nothing", _away(api, hq), _CASE_S)
        await verdict.case("an empty service is written once", _empty(api, hq), _CASE_S)
    elsewhere = directory / "elsewhere"
    elsewhere.mkdir()
    starts = _start_while_away(openapi, elsewhere)
    await verdict.case("who starts while a location, or all of HQ, is away takes nothing out", starts, _CASE_S)
    verdict.count("nothing was refused", "; ".join(api.refused[:3]))
    return verdict


async def _start_while_away(openapi: OpenApi, directory: Path) -> None:
    api = ApiServer(openapi)
    async with AsyncExitStack() as stack:
        url = stack.enter_context(_listening(api))
        running = await stack.enter_async_context(programs(directory))
        east, west = await running.registry("east", "east"), await running.registry("west", "west")
        await east.put("web-1", host="10.0.0.1")
        await west.put("web-2", host="10.0.0.2")
        federation = await running.federation(east, west)

        def writer(name: str) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
            env = {"KUBERNETES_URL": url, "NAMESPACE": "shop", "HQ_SERVER": federation.grpc, "HOSTNAME": name}
            order = (sys.executable, "-u", _EXAMPLE / "endpointslices.py", "web", "http", "web")
            return started(order, directory / f"{name}.log", env)

        async with writer("a"):
            await _shows(api, {"10.0.0.1:80", "10.0.0.2:80"})
        west.pause()
        async with writer("b") as second:
            await within(lambda: api.holder == "b", _TAKEN_OVER_S)
            await east.put("web-3", host="10.0.0.3")
            await _shows(api, {f"10.0.0.{number}:80" for number in (1, 2, 3)})
            await east.report("web-1", is_ready=False)
            await asyncio.sleep(_QUIET_S)
            assert "10.0.0.2:80" in api.places()
            west.resume()
            await _shows(api, {"10.0.0.2:80", "10.0.0.3:80"})
            second.kill()
        federation.pause()
        async with writer("c"):
            await within(lambda: api.holder == "c", _TAKEN_OVER_S)
            await asyncio.sleep(_QUIET_S)
            assert api.places() == {"10.0.0.2:80", "10.0.0.3:80"}
            federation.resume()
            await east.report("web-1", is_ready=True)
            await _shows(api, {f"10.0.0.{number}:80" for number in (1, 2, 3)})


async def _shows(api: ApiServer, places: set[str]) -> None:
    await within(lambda: api.places() == places, _TAKEN_OVER_S)


async def _growth(api: ApiServer, hq: Registry) -> None:
    hosts = {f"web-{number}": f"10.0.1.{number}" for number in range(1, _MANY)}
    await hq.put("six", host="fd00::1", port=81)
    await hq.put_many(hosts)
    every = {"10.0.0.1:80", "fd00::1:81", *(f"{host}:80" for host in hosts.values())}
    await _shows(api, every)
    for id_ in ("six", *hosts):
        await hq.delete(id_)
        assert "10.0.0.1:80" in api.places(), "what stays was away"
    await _shows(api, {"10.0.0.1:80"})


async def _take_over(api: ApiServer, hq: Registry, writers: dict[str, asyncio.subprocess.Process]) -> None:
    writer = writers[api.holder]
    writer.kill()
    await writer.wait()
    await hq.put("web-1", host="10.0.0.2")
    await _shows(api, {"10.0.0.1:80", "10.0.0.2:80"})


async def _away(api: ApiServer, hq: Registry) -> None:
    before = api.places()
    hq.pause()
    try:
        await asyncio.sleep(15.0)  # its client leaves a silent replica after 12 s
        assert api.places() == before
    finally:
        hq.resume()
    await hq.report("web-1", is_ready=False)
    await _shows(api, {"10.0.0.1:80"})


async def _empty(api: ApiServer, hq: Registry) -> None:
    for id_ in ("web-0", "web-1"):
        await hq.report(id_, is_ready=False)
    await _shows(api, set())
    lists, renewals = api.lists, api.renewals
    await within(lambda: api.renewals >= renewals + 4, _TAKEN_OVER_S)  # nothing else is written
    assert api.lists <= lists + 1, "the slices were listed at each renewal"  # one repair may fall in between
