"""The policy: who has which roles, how far they reach, and which files are refused."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.auth.policy import parse
from serving.auth.watched_files import BadSecurity, WatchedFiles
from serving.errors import PermissionDenied
from serving.rights.access import Access, Identity, ProofKind
from serving.rights.patterns import IdentityPattern, Patterns
from serving.rights.rules import READ, Role
from tests.support.secured import POLICY

POLICIES = parse(POLICY.encode())


def access(name: str, cluster: str | None = "test", policy: bytes = POLICY.encode()) -> Access:
    scopes = parse(policy).scopes(name, cluster)
    return Access(Identity(name, ProofKind.TOKEN, 0.0), READ, scopes)


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("reader/ann", {Role.READER}),
        ("reader/ann/2", set()),  # `*` is one part
        ("reader/", set()),
        ("xreader/ann", set()),
        ("agent/n1", {Role.AGENT}),
        ("agent/n1/../n2", set()),
        ("agent/n 1", set()),
        ("agent/n1\n", set()),
        ("spiffe://hq.test/agent/n1", {Role.AGENT}),
        ("spiffe://hq.test/agent/", set()),
        ("admin", {Role.ADMIN}),
        ("Admin", set()),
        ("admin2", set()),
        ("", set()),
    ],
)
def test_an_identity_has_the_roles_of_the_patterns_that_match_the_whole_of_it(name: str, roles: set[Role]) -> None:
    assert set(POLICIES.scopes(name, "test")) == roles


def test_an_agent_reaches_its_own_node_and_no_neighbour() -> None:
    agent = access("agent/n1")
    assert agent.covers("web", "n1")
    for other in ("n2", "n11", "n", "", "N1"):
        assert not agent.covers("web", other)


def test_a_scope_of_a_service_does_not_reach_names_that_only_begin_alike() -> None:
    reader = access("web-reader")
    assert reader.covers("web", "n1")
    for other in ("web2", "we", "", "WEB", "web/x", "web\0"):
        assert not reader.covers(other, "n1")


@pytest.mark.parametrize(
    ("services", "nodes", "is_proven"),
    [(["web"], [], True), ([], [], False), (["web", "mail"], [], False), ([], ["n1"], False), (["web"], ["n1"], True)],
)
def test_a_filter_must_name_services_or_nodes_within_reach(
    services: list[str], nodes: list[str], is_proven: bool
) -> None:
    assert access("web-reader").proves(services, nodes) is is_proven


def test_grants_of_another_cluster_count_for_nothing() -> None:
    policy = b"roles: {reader: [{identities: [ann], clusters: [east, 'west-*']}]}"
    assert access("ann", "east", policy).is_unlimited
    assert access("ann", "west-2", policy).is_unlimited
    assert not access("ann", "north", policy).grants
    at_gateway = access("ann", None, policy)
    assert not at_gateway.is_unlimited, "of all clusters, it reaches some"
    assert at_gateway.within("east").is_unlimited
    assert not at_gateway.within("north").proves([], [])


def test_reach_is_the_union_of_grants_and_never_their_product() -> None:
    """Services of one grant do not combine with nodes of another."""
    policy = (
        b"roles: {reader: [{identities: [ann], services: [web], nodes: [n1]}, {identities: [ann], services: [mail]}]}"
    )
    ann = access("ann", "test", policy)
    assert ann.covers("web", "n1")
    assert ann.covers("mail", "n9")
    assert not ann.covers("web", "n9")
    assert not ann.proves(["web", "mail"], ["n1"])


def test_a_denial_hides_the_service_and_node_of_the_instance() -> None:
    with pytest.raises(PermissionDenied, match="web-reader is not authorized to read: instance mail-1 is") as refused:
        access("web-reader").check("mail-1", "secret-service", "secret-node")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "roles"),
        ("[]", "mapping"),
        ("roles: {}\nrole: {}", "file.role"),
        ("roles: {king: []}", "roles.king"),
        ("roles: {reader: {}}", "list of grants"),
        ("roles: {reader: [{}]}", "identities"),
        ("roles: {reader: [{identities: []}]}", "identities"),
        ("roles: {reader: [{identities: [1]}]}", "identities"),
        ("roles: {reader: [{identities: [a], service: [web]}]}", "service"),
        ("roles: {reader: [{identities: [a], services: web}]}", "services"),
        ("roles: {reader: [{identities: [a], services: []}]}", "services"),
        ("roles: {reader: [{identities: ['x/{node}']}]}", "only agents"),
        ("roles: {agent: [{identities: [a]}]}", "{node}"),
        ("roles: {agent: [{identities: ['{node}/{node}']}]}", "pattern"),
        ("roles: {agent: [{identities: ['{node}'], nodes: [n1]}]}", "its own node"),
        ("roles: {uploader: [{identities: [a]}]}", "services"),
        ("roles: {operator: [{identities: [a], services: [web], nodes: [n1]}]}", "write two grants"),
        ("roles: {monitor: [{identities: [a], services: [web]}]}", "by node"),
        ("roles: {healer: [{identities: [a], services: [web]}]}", "by node"),
        ("roles: {reader: [{identities: [a], checks: [ssh]}]}", "monitor's"),
        ("roles: {reader: [], reader: []}", "duplicate key"),
        ("roles: {reader: [{identities: [a], services: [web], services: ['*']}]}", "duplicate key"),
        ("roles: [", "YAML"),
        ("{" * 1_000, "YAML"),
        ("\0", "YAML"),
    ],
)
def test_a_malformed_policy_is_refused_with_the_faulty_part(text: str, word: str) -> None:
    with pytest.raises(BadSecurity, match=".*" + word.replace("{", r"\{").replace("}", r"\}")):
        parse(text.encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_a_policy_or_refused(text: bytes) -> None:
    with suppress(BadSecurity):
        parse(text)


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_pattern_without_a_star_matches_only_itself(word: str, other: str) -> None:
    if "*" not in word:
        assert (other in Patterns([word])) is (other == word)
    if word and "*" not in word and "{node}" not in word:
        assert (IdentityPattern(word).match(other) is not None) is (other == word)


@given(word=st.text("ab*", max_size=8), name=st.text("ab", max_size=12))
def test_a_star_matches_anything_and_other_characters_only_themselves(word: str, name: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, word.split("*"))), name) is not None
    assert (name in Patterns([word])) == expected


def test_matching_a_name_does_not_take_exponential_time() -> None:
    patterns, begun = Patterns(["*-*-prod"]), time.process_time()
    assert "-" * 40_000 not in patterns
    assert time.process_time() - begun < 5, "a matcher that tries all ways takes half a minute of the processor"


def test_scalars_that_do_not_fit_their_tag_are_invalid_yaml() -> None:
    for text in (b'roles: !!int ""', b"roles: !!bool maybe", b'roles: !!float ""'):
        with pytest.raises(BadSecurity, match="not valid YAML"):
            parse(text)


def test_a_fault_names_the_line_without_quoting_it() -> None:
    with pytest.raises(BadSecurity, match="line 2") as raised:
        parse(b"roles:\n  reader: [{identities: [confidential-name}]\n")
    assert "confidential" not in str(raised.value)


def test_a_file_that_makes_its_parser_fail_leaves_the_old_one_in_force_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    path.write_text("7")
    watched = WatchedFiles("file", (path,), lambda contents: 100 // int(contents[0]))
    path.write_text("0")
    assert not watched.reread()
    assert (watched.current, "ZeroDivisionError" in watched.fault) == (14, True)
    assert f"{path}: cannot be parsed (ZeroDivisionError)" in caplog.text
