"""etcd with TLS and with passwords."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from serving.storage.tls import EtcdTls
from store.embedded import free_ports
from store.etcd import EtcdConfig, EtcdStore
from store.port import Disconnected, Unavailable
from tests.support.certificates import Authority
from tests.support.etcd import OwnEtcd
from tests.support.etcd_users import PASSWORD, USER, forget_tokens, forget_users, require_password
from tests.support.stores import Place, batches


@asynccontextmanager
async def open_place(config: EtcdConfig, prefix: bytes = b"/test/") -> AsyncIterator[Place]:
    store = EtcdStore(config)
    yield Place(store, prefix)
    await store.close()


async def works(place: Place) -> None:
    head = await place.put("a")
    async with place.watch(head) as stream:
        await batches(stream, await place.put("b"))


# --- TLS --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Secured:
    """An etcd behind TLS, and who signed its certificate."""

    endpoint: str
    authority: Authority


def encrypted(etcd: Secured, ca: str, cert: str = "", key: str = "") -> EtcdConfig:
    return EtcdConfig((etcd.endpoint,), EtcdTls(ca, cert, key, time.monotonic))


async def secured(own_etcd: OwnEtcd, tmp_path: Path, *flags: str) -> Secured:
    authority = Authority(tmp_path / "tls")
    server = authority.issue("server")
    ports, (tls_port, _) = free_ports(), free_ports()
    endpoint = f"127.0.0.1:{tls_port}"
    await own_etcd(
        ports=lambda: ports,
        extra_flags=(
            f"--listen-client-urls=http://127.0.0.1:{ports[0]},https://{endpoint}",
            f"--cert-file={server.cert}",
            f"--key-file={server.key}",
            *(flag.format(ca=authority.cert) for flag in flags),
        ),
    )
    return Secured(endpoint, authority)


async def test_tls_needs_the_authority_that_signed(own_etcd: OwnEtcd, tmp_path: Path) -> None:
    etcd = await secured(own_etcd, tmp_path)
    async with open_place(encrypted(etcd, str(etcd.authority.cert))) as place:
        await works(place)
    stranger = Authority(tmp_path / "other", "stranger")
    async with open_place(encrypted(etcd, str(stranger.cert))) as place:
        with pytest.raises(Unavailable, match=r"(?i)certificate"):
            await place.put("a")
    async with open_place(EtcdConfig((etcd.endpoint,))) as place:
        with pytest.raises(Unavailable):
            await place.put("a")


async def test_where_etcd_asks_for_it_a_client_shows_its_certificate(own_etcd: OwnEtcd, tmp_path: Path) -> None:
    etcd = await secured(own_etcd, tmp_path, "--client-cert-auth", "--trusted-ca-file={ca}")
    ca, client = str(etcd.authority.cert), etcd.authority.issue("client")
    async with open_place(encrypted(etcd, ca, str(client.cert), str(client.key))) as place:
        await works(place)
    async with open_place(encrypted(etcd, ca)) as place:
        with pytest.raises(Unavailable):
            await place.head()


async def test_a_divided_etcd_opens_to_each_user_its_own_part_and_to_the_administrator_everything(
    own_etcd: OwnEtcd, tmp_path: Path
) -> None:
    etcd = await secured(own_etcd, tmp_path, "--client-cert-auth", "--trusted-ca-file={ca}")

    def known_as(name: str) -> EtcdConfig:
        shown = etcd.authority.issue(name)
        return encrypted(etcd, str(etcd.authority.cert), str(shown.cert), str(shown.key))

    async with open_place(known_as("spiffe-hq")) as place, open_place(known_as("cms"), b"/cms/v1/") as cms:
        await works(cms)
        store = place.store
        assert isinstance(store, EtcdStore)
        for _ in range(2):  # it may be repeated
            await store.divide("spiffe-hq", {"cms": b"/cms/v1/", "nanny": b"/nanny/v1/"})
        await works(place)
        await works(cms)  # over the connection from before
        await store.compact(await cms.put("a"))
        async with open_place(known_as("cms")) as foreign, open_place(known_as("stranger"), b"/cms/v1/") as stranger:
            for refused in (foreign, stranger):
                with pytest.raises(Unavailable, match=r"permission denied|user name not found"):
                    await refused.head()
                with pytest.raises(Unavailable, match=r"permission denied|user name not found"):
                    await refused.put("a")
                with pytest.raises(Disconnected):
                    async with refused.watch(1):
                        pass
        with pytest.raises(Unavailable, match=r"permission denied|not permitted"):
            await cms.store.divide("cms", {})  # type: ignore[attr-defined]


async def test_a_user_whose_prefix_changed_can_no_longer_open_the_old_one(own_etcd: OwnEtcd, tmp_path: Path) -> None:
    etcd = await secured(own_etcd, tmp_path, "--client-cert-auth", "--trusted-ca-file={ca}")

    def known_as(name: str) -> EtcdConfig:
        shown = etcd.authority.issue(name)
        return encrypted(etcd, str(etcd.authority.cert), str(shown.cert), str(shown.key))

    async with open_place(known_as("spiffe-hq")) as place, open_place(known_as("cms"), b"/cms/v1/") as old:
        store = place.store
        assert isinstance(store, EtcdStore)
        for empty in (b"", b"/"):
            with pytest.raises(ValueError, match="cms: an empty prefix"):
                await store.divide("spiffe-hq", {"cms": empty})
        await works(old)
        await store.divide("spiffe-hq", {"cms": b"/cms/v1/"})
        await works(old)
        await store.divide("spiffe-hq", {"cms": b"/moved/"})
        with pytest.raises(Unavailable, match="permission denied"):
            await old.put("a")
        async with open_place(known_as("cms"), b"/moved/") as new:
            await works(new)


@pytest.mark.long
async def test_a_renewed_certificate_is_shown_without_a_failed_call(own_etcd: OwnEtcd, tmp_path: Path) -> None:
    etcd = await secured(own_etcd, tmp_path, "--client-cert-auth", "--trusted-ca-file={ca}")
    ca, client = str(etcd.authority.cert), etcd.authority.issue("client")
    async with open_place(encrypted(etcd, ca, str(client.cert), str(client.key))) as place:
        store = place.store
        assert isinstance(store, EtcdStore)
        first = store._members
        etcd.authority.issue("client")
        async with asyncio.timeout(30):
            while store._members is first:
                await works(place)
                await asyncio.sleep(0.1)
        await works(place)
        client.key.write_text("broken")
        second = store._members
        async with asyncio.timeout(30):
            while "no unencrypted PEM key" not in store.files_fault:
                await works(place)
                await asyncio.sleep(0.1)
        assert store._members is second
        etcd.authority.issue("client")
        async with asyncio.timeout(30):
            while store.files_fault:
                await works(place)
                await asyncio.sleep(0.1)


# --- passwords --------------------------------------------------------------------------------------------------------


async def test_etcd_lets_in_a_client_that_knows_the_password(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    await asyncio.to_thread(require_password, etcd.endpoint)
    async with open_place(EtcdConfig((etcd.endpoint,), user=USER, password=PASSWORD)) as place:
        await works(place)
        assert [member.error for member in await place.store.members()] == [""]
    async with open_place(EtcdConfig((etcd.endpoint,), user=USER, password="wrong")) as place:
        with pytest.raises(Unavailable, match="authentication as user root failed"):
            await place.put("a")
    async with open_place(EtcdConfig((etcd.endpoint,))) as place:
        with pytest.raises(Unavailable, match="user name is empty"):
            await place.put("a")


@pytest.mark.long
async def test_a_token_that_was_forgotten_is_replaced_unnoticed(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    await asyncio.to_thread(require_password, etcd.endpoint)
    async with open_place(EtcdConfig((etcd.endpoint,), user=USER, password=PASSWORD)) as place:
        head = await place.put("a")
        async with place.watch(head) as stream:
            await asyncio.to_thread(forget_tokens, etcd.endpoint)
            at = await place.put("b")
            await batches(stream, at)  # a watch that stands does not need its token any more
        await asyncio.to_thread(forget_tokens, etcd.endpoint)
        await asyncio.gather(*(place.get("a") for _ in range(20)))


async def test_a_watch_with_a_forgotten_token_opens_at_the_second_try(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    await asyncio.to_thread(require_password, etcd.endpoint)
    async with open_place(EtcdConfig((etcd.endpoint,), user=USER, password=PASSWORD)) as place:
        head = await place.put("a")
        await asyncio.to_thread(forget_tokens, etcd.endpoint)
        for attempt in range(2):
            try:
                async with place.watch(head - 1) as stream:
                    await batches(stream, head)
            except Disconnected:
                assert attempt == 0


async def test_authentication_may_be_switched_on_and_off_under_a_configured_user(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    async with open_place(EtcdConfig((etcd.endpoint,), user=USER, password=PASSWORD)) as place:
        await works(place)
        await asyncio.to_thread(require_password, etcd.endpoint)
        await place.put("a")
        assert [member.error for member in await place.store.members()] == [""]
        await asyncio.to_thread(forget_users, etcd.endpoint)
        await works(place)


async def test_a_watch_opens_soon_after_authentication_was_switched_on(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    async with open_place(EtcdConfig((etcd.endpoint,), user=USER, password=PASSWORD)) as place:
        head = await place.put("a")
        await asyncio.to_thread(require_password, etcd.endpoint)
        for attempt in range(2):
            try:
                async with place.watch(head - 1) as stream:
                    await batches(stream, head)
            except Disconnected:
                assert attempt == 0


async def test_of_several_members_errors_the_one_that_explains_is_shown(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    await asyncio.to_thread(require_password, etcd.endpoint)
    (unused, _) = free_ports()
    async with open_place(EtcdConfig((etcd.endpoint, f"127.0.0.1:{unused}"))) as place:
        for _ in range(2):  # whichever member comes first
            with pytest.raises(Unavailable, match="set --etcd-user and --etcd-password-file"):
                await place.head()


@pytest.mark.long
async def test_a_token_that_expired_is_replaced_unnoticed(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd(extra_flags=("--auth-token-ttl=1",))
    await asyncio.to_thread(require_password, etcd.endpoint)
    async with open_place(EtcdConfig((etcd.endpoint,), user=USER, password=PASSWORD)) as place:
        await place.put("a")
        token = place.store._tokens[etcd.endpoint]  # type: ignore[attr-defined]
        first = await token.metadata()
        async with asyncio.timeout(30):
            while await token.metadata() == first:
                await asyncio.sleep(2.5)  # etcd's clock is not ours, and each use of a token gives it another second
                await place.put("b")
