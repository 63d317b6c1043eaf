"""Certificates and tokens of clients: renewed from their files, and never printed."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from hqclient.client import Client, HqApiError
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from hqclient.watch_items import Interrupted
from hqpb.v1 import service_pb2 as pb
from tests.support.certificates import Certificate
from tests.support.secured import Secured, Served, served


class Hand:
    """A clock that makes credentials look at their files on each reading."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        self.time += 10.0
        return self.time


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    return Secured(tmp_path / "secured")


@pytest.fixture
async def replica(secured: Secured) -> AsyncIterator[Served]:
    security = secured.security(**secured.with_certificates(clock_skew=0.0))
    async with served(security, grpc_mtls="127.0.0.1:0") as running:
        yield running


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return tmp_path / "mine.token"


def with_token(secured: Secured, token_file: Path, token: str) -> Credentials:
    token_file.write_text(token + "\n")
    return Credentials(CredentialFiles(ca=str(secured.authority.cert), token_file=str(token_file)), Hand())


def with_certificate(secured: Secured, tmp_path: Path, shown: Certificate) -> Credentials:
    lay_down(tmp_path, shown)
    files = CredentialFiles(str(secured.authority.cert), str(tmp_path / "me.crt"), str(tmp_path / "me.key"))
    return Credentials(files, Hand())


def lay_down(directory: Path, shown: Certificate) -> None:
    for made, place in ((shown.cert, "me.crt"), (shown.key, "me.key")):
        shutil.copy(made, directory / f"{place}.new")
        (directory / f"{place}.new").rename(directory / place)


async def code_of(client: Client) -> grpc.StatusCode:
    try:
        await client.count(timeout_s=10)
    except HqApiError as error:
        return error.code
    return grpc.StatusCode.OK


# --- tokens ---


async def test_a_token_is_read_again_when_its_file_changes(replica: Served, secured: Secured, token_file: Path) -> None:
    credentials = with_token(secured, token_file, secured.issuer.token("reader/ada", good_for_s=-1))
    async with Client([replica.addresses.grpc], credentials=credentials) as client:
        assert await code_of(client) is grpc.StatusCode.UNAUTHENTICATED
        token_file.write_text(secured.issuer.token("reader/ada"))
        assert await code_of(client) is grpc.StatusCode.OK
        token_file.write_text(secured.issuer.token("stranger"))
        assert await code_of(client) is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize("spoiled", ["", "two words", "line\nbreak", "\x00\xff", None])
async def test_an_unusable_token_leaves_the_old_one_in_force(
    replica: Served, secured: Secured, token_file: Path, caplog: pytest.LogCaptureFixture, spoiled: str | None
) -> None:
    credentials = with_token(secured, token_file, secured.issuer.token("reader/ada"))
    async with Client([replica.addresses.grpc], credentials=credentials) as client:
        assert await code_of(client) is grpc.StatusCode.OK
        token_file.unlink()
        if spoiled is not None:
            token_file.write_text(spoiled)
        assert await code_of(client) is grpc.StatusCode.OK
        assert await code_of(client) is grpc.StatusCode.OK
    warnings = [
        r.getMessage() for r in caplog.records if r.levelno == logging.WARNING and r.name.startswith("hqclient")
    ]
    assert len(warnings) == 1, "it is said once, not for each call"
    assert str(token_file) in warnings[0]
    assert "remain in force" in warnings[0]
    assert "words" not in warnings[0]


@pytest.mark.long
async def test_a_watch_goes_on_with_a_renewed_token_when_its_own_runs_out(
    replica: Served, secured: Secured, token_file: Path
) -> None:
    credentials = with_token(secured, token_file, secured.issuer.token("reader/ada", good_for_s=8))
    async with (
        asyncio.timeout(60),
        Client([replica.addresses.grpc], credentials=credentials) as client,
        client.watch() as items,
    ):
        interrupted = 0
        async for item in items:
            if isinstance(item, Interrupted):
                interrupted += 1
                assert item.error.code is grpc.StatusCode.UNAUTHENTICATED
                token_file.write_text(secured.issuer.token("reader/ada"))
            elif interrupted:
                break
        assert interrupted


async def test_a_watch_that_was_never_let_in_ends_with_the_error(
    replica: Served, secured: Secured, token_file: Path
) -> None:
    credentials = with_token(secured, token_file, secured.issuer.token("reader/ada", good_for_s=-1))
    async with Client([replica.addresses.grpc], credentials=credentials) as client, client.watch() as items:
        with pytest.raises(HqApiError, match="expired"):
            await anext(aiter(items))


# --- certificates ---


@pytest.mark.long
async def test_a_renewed_certificate_makes_a_new_channel_and_leaves_the_old_one_to_its_streams(
    replica: Served, secured: Secured, tmp_path: Path
) -> None:
    reader = secured.authority.issue("reader", ["spiffe://hq.test/gateway"])
    stranger = secured.authority.issue("stranger", ["spiffe://hq.test/stranger"])
    credentials = with_certificate(secured, tmp_path, reader)
    address = replica.addresses.grpc_mtls
    async with Client([address], credentials=credentials) as client:
        link = client._pool._links[address]
        stubs = await link.connected_stubs(10)
        stream = stubs.instances.WatchInstances(pb.WatchInstancesRequest())
        await stream.read()
        lay_down(tmp_path, stranger)
        assert await code_of(client) is grpc.StatusCode.PERMISSION_DENIED
        assert (await link.connected_stubs(10)) is not stubs
        bookmark = await asyncio.wait_for(stream.read(), 20)
        assert isinstance(bookmark, pb.WatchInstancesResponse), "the stream on the old channel goes on"
        lay_down(tmp_path, reader)
        assert await code_of(client) is grpc.StatusCode.OK


async def test_a_key_that_does_not_fit_leaves_the_old_pair_in_force(
    replica: Served, secured: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = secured.authority.issue("reader", ["spiffe://hq.test/gateway"])
    other = secured.authority.issue("other", ["spiffe://hq.test/gateway"])
    credentials = with_certificate(secured, tmp_path, reader)
    async with Client([replica.addresses.grpc_mtls], credentials=credentials) as client:
        assert await code_of(client) is grpc.StatusCode.OK
        shutil.copy(other.key, tmp_path / "me.key")
        assert await code_of(client) is grpc.StatusCode.OK
        assert "is not the key of" in caplog.text
        before = credentials.version()
        shutil.copy(other.cert, tmp_path / "me.crt")
        assert await code_of(client) is grpc.StatusCode.OK
        assert credentials.version() == before + 1


@pytest.mark.long
async def test_a_hundred_rotations_under_load_fail_no_call(replica: Served, secured: Secured, tmp_path: Path) -> None:
    reader = ["spiffe://hq.test/gateway"]
    pairs = [secured.authority.issue(f"reader-{n}", reader) for n in range(2)]
    credentials = with_certificate(secured, tmp_path, pairs[0])
    async with Client([replica.addresses.grpc_mtls], credentials=credentials) as client:
        ended = asyncio.Event()

        async def keep_asking() -> int:
            asked = 0
            while not ended.is_set():
                await client.count(timeout_s=30)
                asked += 1
            return asked

        asking = [asyncio.create_task(keep_asking()) for _ in range(4)]
        for number in range(100):
            lay_down(tmp_path, pairs[(number + 1) % 2])
            await client.count(timeout_s=30)
        ended.set()
        assert min(await asyncio.gather(*asking)) > 0
        assert credentials.version() == 101


async def test_no_repr_and_no_error_holds_the_token(
    replica: Served, secured: Secured, token_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = secured.issuer.token("stranger")
    credentials = with_token(secured, token_file, token)
    async with Client([replica.addresses.grpc], credentials=credentials) as client:
        with pytest.raises(HqApiError) as denied:
            await client.count()
        shown = [repr(credentials), repr(client), repr(client._pool), str(denied.value), repr(denied.value)]
    assert token_file.name in shown[0]
    assert not any(token in text or token.rpartition(".")[2] in text for text in (*shown, caplog.text))
