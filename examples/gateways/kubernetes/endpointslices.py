"""Publish a service of HQ as EndpointSlices of a Kubernetes Service: programs in the cluster call it by name.

python endpointslices.py HQ_SERVICE PORT KUBERNETES_SERVICE

Run two: the one that holds a Lease writes. While HQ is away, the slices stay as they are; while a location has not been
heard yet, nothing is taken out of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import ipaddress
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hqclient import Discovery, Origin

MANAGER = "hq-endpointslices"
MOST_ENDPOINTS = 100  # in a slice, as Kubernetes' own controller has it
LEASE_S, RENEW_S, REQUEST_S = 15, 5.0, 4.0
REPAIR_S = 60.0  # slices are written again after so long, in case somebody else changed them
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
Json = dict[str, Any]


class Kubernetes:
    """The API server, for one namespace. Calls block."""

    def __init__(self) -> None:
        inside = f"https://{os.environ.get('KUBERNETES_SERVICE_HOST')}:{os.environ.get('KUBERNETES_SERVICE_PORT')}"
        self._base = os.environ.get("KUBERNETES_URL", inside)
        self.namespace = os.environ.get("NAMESPACE") or (ACCOUNT / "namespace").read_text()
        ca = ACCOUNT / "ca.crt"
        self._tls = ssl.create_default_context(cafile=ca) if ca.exists() else None

    def call(self, method: str, group: str, path: str, body: Json | None = None) -> Json:
        """Raises urllib.error.HTTPError, OSError, http.client.HTTPException, ValueError."""
        kind = "application/apply-patch+yaml" if method == "PATCH" else "application/json"  # JSON is YAML
        headers = {"content-type": kind}
        if (ACCOUNT / "token").exists():
            headers["authorization"] = f"Bearer {(ACCOUNT / 'token').read_text()}"  # it is renewed
        url = f"{self._base}/apis/{group}/v1/namespaces/{self.namespace}/{path}"
        request = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers, method=method)
        with urllib.request.urlopen(request, timeout=REQUEST_S, context=self._tls) as answer:
            said: Json = json.load(answer)
            return said


class LostLease(Exception):
    """Another process took the lease meanwhile."""


class WriterLease:
    """Elects one writer of several processes by a Lease, as Kubernetes' own controllers do."""

    def __init__(self, kubernetes: Kubernetes, name: str, holder: str) -> None:
        self._kubernetes, self._name, self._holder = kubernetes, name, holder
        self._version, self._seen_at, self._renewed_at = "", 0.0, 0.0

    def is_held(self) -> bool:
        """Take or renew the lease, unless somebody else renews it. Other machines' clocks are not looked at."""
        try:
            lease = self._call("GET", f"leases/{self._name}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._name}}
            return self._write("POST", "leases", made)
        if lease["metadata"]["resourceVersion"] != self._version:
            self._version, self._seen_at = lease["metadata"]["resourceVersion"], time.monotonic()
        holder = (lease.get("spec") or {}).get("holderIdentity")
        if holder and holder != self._holder and time.monotonic() < self._seen_at + LEASE_S:
            return False
        return self._write("PUT", f"leases/{self._name}", lease)

    def keep(self) -> None:
        """Renew the lease when that is due: call it before each of many requests. Raises LostLease, or as `is_held`."""
        if time.monotonic() >= self._renewed_at + RENEW_S and not self.is_held():
            raise LostLease("another process writes now")

    def _write(self, method: str, path: str, lease: Json) -> bool:
        self._renewed_at = time.monotonic()
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        lease["spec"] = {"holderIdentity": self._holder, "leaseDurationSeconds": LEASE_S, "renewTime": now}
        try:
            self._call(method, path, lease)
        except urllib.error.HTTPError as error:
            if error.code == 409:  # another one was faster
                return False
            raise
        return True

    def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        return self._kubernetes.call(method, "coordination.k8s.io", path, body)


def slices(service: str, port: str, places: Iterable[tuple[str, int]]) -> dict[str, Json]:
    """Slices by name, for addresses and ports: one family and one number each. What Kubernetes refuses is left out."""
    groups = defaultdict[tuple[int, int], set[str]](set)
    for host, number in places:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            continue  # a name: kube-proxy takes addresses only
        if not (address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast):
            groups[address.version, number].add(str(address))
    made = {}
    for (version, number), addresses in groups.items():
        parts = in_parts(addresses)
        for at, part in enumerate(parts):
            if not part:
                continue
            name = f"{service}-hq-ipv{version}-{number}-{at}-of-{len(parts)}"
            made[name] = {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": name, "labels": labels(service)},
                "addressType": f"IPv{version}",
                "ports": [{"name": port, "port": number, "protocol": "TCP"}],
                "endpoints": [{"addresses": [one], "conditions": {"ready": True}} for one in part],
            }
    return made


def in_parts(addresses: Iterable[str]) -> list[list[str]]:
    """Split addresses by digest: one address more or less changes one part, unless the number of parts (a power of two)
    changes.
    """
    count = 1
    while True:
        parts: list[list[str]] = [[] for _ in range(count)]
        for one in sorted(addresses):
            parts[int.from_bytes(hashlib.sha256(one.encode()).digest()[:8]) % count].append(one)
        if max(map(len, parts)) <= MOST_ENDPOINTS:
            return parts
        count *= 2


def labels(service: str) -> dict[str, str]:
    return {"kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": MANAGER}


def existing(kubernetes: Kubernetes, service: str) -> list[Json]:
    """Our slices that are there."""
    selector = ",".join(f"{key}%3D{value}" for key, value in labels(service).items())
    found = kubernetes.call("GET", "discovery.k8s.io", f"endpointslices?labelSelector={selector}")
    return list(found["items"])


def places_in(items: Iterable[Json]) -> set[tuple[str, int]]:
    """Addresses and ports of slices."""
    return {(host, one["ports"][0]["port"]) for one in items for each in one["endpoints"] for host in each["addresses"]}


def write(
    kubernetes: Kubernetes,
    lease: WriterLease,
    service: str,
    wanted: Mapping[str, Json],
    written: Mapping[str, Json],
) -> None:
    """Write the slices that differ from those written before, then delete those that are not wanted."""
    for name, one in wanted.items():
        if written.get(name) == one:
            continue
        lease.keep()
        kubernetes.call("PATCH", "discovery.k8s.io", f"endpointslices/{name}?fieldManager={MANAGER}&force=true", one)
    for name in {one["metadata"]["name"] for one in existing(kubernetes, service)} - wanted.keys():
        lease.keep()
        kubernetes.call("DELETE", "discovery.k8s.io", f"endpointslices/{name}")


async def main(hq_service: str, port: str, service: str) -> None:
    servers = os.environ.get("HQ_SERVER", "127.0.0.1:7071").split(",")
    kubernetes = Kubernetes()
    lease = WriterLease(kubernetes, f"{service}-hq", os.environ.get("HOSTNAME", str(os.getpid())))
    written: dict[str, Json] | None = None  # unknown
    written_at, changed = -REPAIR_S, asyncio.Event()
    async with Discovery(servers).service(hq_service, port=port) as found:
        found.on_change(lambda _: changed.set())
        while True:
            changed.clear()
            try:
                is_writer = await asyncio.to_thread(lease.is_held)
                weighed = [one for one in found.endpoints if one.weight] or found.endpoints
                places = {(one.host, one.port) for one in weighed}
                if is_writer and found.unheard:  # what is there may be of a location that is away
                    places |= places_in(await asyncio.to_thread(existing, kubernetes, service))
                wanted = slices(service, port, places)
                if time.monotonic() > written_at + REPAIR_S:
                    written = None
                if is_writer and found.source is Origin.LIVE and wanted != written:
                    await asyncio.to_thread(write, kubernetes, lease, service, wanted, written or {})
                    written, written_at = wanted, time.monotonic()
                    print(f"{len(wanted)} slices, {sum(len(one['endpoints']) for one in wanted.values())} endpoints")
                elif not is_writer:
                    written = None  # somebody else may change them
            except (OSError, ValueError, http.client.HTTPException, LostLease) as error:  # tried again
                written = None
                print(f"not written: {error}", file=sys.stderr)
            try:
                async with asyncio.timeout(RENEW_S):
                    await changed.wait()
            except TimeoutError:
                continue


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: endpointslices.py HQ_SERVICE PORT KUBERNETES_SERVICE; PORT is a port's name, e.g. http")
    asyncio.run(main(*sys.argv[1:]))
