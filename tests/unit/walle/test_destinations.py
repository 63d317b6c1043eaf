"""Where Wall-E may call: addresses are parsed strictly, and match entries of the configuration or are not called."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from serving.rights.patterns import Patterns
from walle.outgoing.destinations import (
    Address,
    AllowedEndpoint,
    BadAddress,
    CmsEndpoint,
    Controllers,
    Destinations,
    parse_address,
    parse_url,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.7.0.1", ("10.7.0.1", 0)),
        ("10.7.0.1:8443", ("10.7.0.1", 8443)),
        ("BMC-7.mgmt.Example", ("bmc-7.mgmt.example", 0)),
        ("[2001:db8::1]", ("2001:db8::1", 0)),
        ("[2001:DB8::1]:443", ("2001:db8::1", 443)),
        ("[::ffff:127.0.0.1]", ("127.0.0.1", 0)),
    ],
)
def test_an_address_is_a_host_and_perhaps_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address
    assert parse_address(str(parse_address(text))) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-oProxyCommand=touch /tmp/x",
        "-h",
        "a.-b",
        "https://10.7.0.1",
        "10.7.0.1/redfish",
        "10.7.0.1?x",
        "10.7.0.1#x",
        "ada@10.7.0.1",
        "ada:secret@10.7.0.1",
        "10.7.0.1:",
        "10.7.0.1:0",
        "10.7.0.1:65536",
        "10.7.0.1:443:443",
        "10.7.0.1 evil.example",
        "10.7.0.1\n",
        "10.7.0.1\x00",
        "2130706433",  # what follows is 127.0.0.1 for a resolver
        "127.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "010.7.0.1",
        "2001:db8::1",
        "[fe80::1%eth0]",
        "[10.7.0.1",
        "a..b",
        "a" * 64,
        "a_b",
        "ä.example",
    ],
)
def test_malformed_text_is_not_an_address(text: str) -> None:
    with pytest.raises(BadAddress):
        parse_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://cms.example",
        "https://",
        "https:///tasks",
        "https://ada@cms.example",
        "https://cms.example@evil.example",
        "https://cms.example\\@evil.example",
        "https://cms.example/a/../b",
        "https://cms.example/./b",
        "https://cms.example//b",
        "https://cms.example/%2e%2e/b",
        "https://cms.example/#x",
        "https://cms.example/?x=1",
        "https://cms.example/a b",
        "https://cms.example/\n",
        "https://cms.example:http",
    ],
)
def test_a_malformed_or_tricky_url_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        parse_url(text)


def controllers(match: str, port: int = 0, nodes: str = "*") -> Destinations:
    network = ip_network(match) if match[0].isdigit() or ":" in match else match
    return Destinations((Controllers(network, port, Patterns([nodes])),))


@pytest.mark.parametrize(
    ("listed", "address", "is_called"),
    [
        (controllers("10.7.0.0/16"), "10.7.3.4", True),
        (controllers("10.7.0.0/16"), "10.8.3.4", False),
        (controllers("10.7.0.0/16"), "10.7.3.4:443", True),
        (controllers("10.7.0.0/16"), "10.7.3.4:8443", False),
        (controllers("10.7.0.0/16", 8443), "10.7.3.4:8443", True),
        (controllers("10.7.0.0/16", 8443), "10.7.3.4", False),
        (controllers("10.7.0.0/16"), "10.7.evil.example", False),
        (controllers("mgmt.example"), "n1.mgmt.example", True),
        (controllers("mgmt.example"), "mgmt.example", True),
        (controllers("mgmt.example"), "evilmgmt.example", False),
        (controllers("mgmt.example"), "mgmt.example.evil", False),
        (controllers("mgmt.example"), "10.7.3.4", False),
        (controllers("10.7.0.0/16", nodes="prod-*"), "10.7.3.4", False),
        (controllers("0.0.0.0/0"), "10.7.3.4", True),
        (controllers("0.0.0.0/0"), "127.0.0.1", False),
        (controllers("0.0.0.0/0"), "169.254.169.254", False),
        (controllers("127.0.0.0/8"), "127.0.0.1", False),
        (controllers("127.0.0.1"), "127.0.0.1", True),
        (controllers("::/0"), "[::1]", False),
        (controllers("::/0"), "[::ffff:127.0.0.1]", False),
        (controllers("::/0"), "[fe80::1]", False),
        (Destinations(), "10.7.3.4", False),
    ],
)
def test_a_management_controller_is_called_only_if_an_entry_covers_it(
    listed: Destinations, address: str, is_called: bool
) -> None:
    assert (listed.controller_at(parse_address(address), "lab-1", 443) is not None) is is_called


def test_the_account_is_that_of_the_first_entry_which_covers_the_host() -> None:
    lab, prod = (
        Controllers(ip_network("10.7.0.0/16"), nodes=Patterns(["lab-*"]), user="lab", password="l"),
        Controllers(ip_network("10.0.0.0/8"), user="prod", password="hidden"),
    )
    listed = Destinations((lab, prod))
    assert listed.controller_at(Address("10.7.0.1"), "lab-1") is lab
    assert listed.controller_at(Address("10.7.0.1"), "prod-1") is prod
    assert prod.headers() == {"authorization": "Basic cHJvZDpoaWRkZW4="}
    assert "hidden" not in repr(prod)


@pytest.mark.parametrize(
    ("ip", "may"), [("10.7.0.1", True), ("127.0.0.1", False), ("169.254.1.1", False), ("::", False)]
)
def test_a_name_below_an_entry_may_not_resolve_to_this_machine(ip: str, may: bool) -> None:
    entry = Controllers("mgmt.example")
    assert entry.may_resolve_to("n1.mgmt.example", ip_address(ip)) is may
    assert entry.may_resolve_to("mgmt.example", ip_address(ip)), "it is named"


PROD = CmsEndpoint(parse_url("https://cms.prod.example/api"), "secret", tvm_app_id="prod")
OPEN = CmsEndpoint(parse_url("http://cms.lab.example:8080"))


@pytest.mark.parametrize(
    ("url", "app", "token"),
    [
        ("https://cms.prod.example/api", "prod", "secret"),
        ("https://CMS.prod.example:443/api/", "prod", "secret"),
        ("https://cms.prod.example/api/web", "prod", "secret"),
        ("https://cms.prod.example/api", "", ""),  # not asked for, not sent
        ("https://cms.prod.example/api", "lab", None),
        ("https://cms.prod.example/apis", "prod", None),
        ("https://cms.prod.example", "prod", None),
        ("http://cms.prod.example/api", "prod", None),
        ("https://cms.prod.example:8443/api", "prod", None),
        ("https://evil.example/api", "prod", None),
        ("http://cms.lab.example:8080/x", "", ""),
        ("http://cms.lab.example:8080/x", "prod", None),
    ],
)
def test_a_token_is_sent_only_to_the_cms_it_is_for(url: str, app: str, token: str | None) -> None:
    entry = Destinations(cms=(PROD, OPEN)).cms_at(url, app)
    assert (entry.token if entry is not None else None) == token


def test_a_webhook_is_called_with_its_query_at_listed_places_only() -> None:
    listed = Destinations(notify=(AllowedEndpoint(parse_url("https://hooks.example/services")),))
    assert listed.hook_at("https://hooks.example/services/T1?key=7") is not None
    assert listed.hook_at("https://hooks.example/other") is None
