"""get and find: formats, order, columns."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from tests.clients.hqctl.conftest import Hqctl, clean_environment, documents


@pytest.fixture(autouse=True)
def three(hqctl: Hqctl, service: str) -> None:
    assert hqctl("apply", "-f", "-", stdin=documents(service, "1", "2", "3")).code == 0


def test_get_without_ids_lists_what_matches(hqctl: Hqctl, service: str) -> None:
    done = hqctl("get", "--service", service, "-l", "tier=t2")
    assert [line[0] for line in done.lines] == ["INSTANCE", f"{service}-2"]


def test_ids_together_with_a_filter_are_a_mistake(hqctl: Hqctl, service: str) -> None:
    done = hqctl("get", f"{service}-1", "-l", "tier=t2")
    assert done.code == 2
    assert done.err.count("\n") == 1


def test_a_list_in_json_is_one_object_with_items_and_sources(hqctl: Hqctl, service: str) -> None:
    answer = json.loads(hqctl("find", service, "-o", "json").out)
    assert [item["meta"]["id"] for item in answer["items"]] == [f"{service}-1", f"{service}-2", f"{service}-3"]
    assert (answer["kind"], answer["sources"][0]["cluster"]) == ("List", "east")


def test_one_instance_in_json_is_the_instance(hqctl: Hqctl, service: str) -> None:
    assert json.loads(hqctl("get", f"{service}-1", "-o", "json").out)["meta"]["id"] == f"{service}-1"


def test_a_list_in_yaml_is_one_document_each(hqctl: Hqctl, service: str) -> None:
    found = list(yaml.safe_load_all(hqctl("find", service, "-o", "yaml").out))
    assert [one["meta"]["id"] for one in found] == [f"{service}-1", f"{service}-2", f"{service}-3"]


def test_a_jsonpath_picks_as_kubectl_does(hqctl: Hqctl, service: str) -> None:
    template = '{range .items[*]}{.meta.id}={.meta.labels.tier}{"\\n"}{end}'
    done = hqctl("find", service, "--limit", "2", "-o", f"jsonpath={template}")
    assert done.out == f"{service}-1=t1\n{service}-2=t2\n"
    assert hqctl("get", f"{service}-1", "-o", "jsonpath=.spec.revision[*].id").out == "r1 r0\n"


def test_a_faulty_jsonpath_is_told_before_anything_is_asked(hqctl: Hqctl) -> None:
    done = hqctl("find", "-o", "jsonpath={.items[", HQ_SERVER="127.0.0.1:1")
    assert done.code == 2
    assert ".items[" in done.err


@pytest.mark.parametrize(
    ("selector", "numbers"),
    [("tier in (t1,t3)", "13"), ("tier notin (t1),tier", "23"), ("tier!=t2", "13"), ("!tier", ""), ("tier=t2", "2")],
)
def test_selectors_of_labels_are_those_of_kubectl(hqctl: Hqctl, service: str, selector: str, numbers: str) -> None:
    expected = "".join(f"{service}-{number}\n" for number in numbers)
    assert hqctl("find", service, "-l", selector, "-o", "name").out == expected
    counted = json.loads(hqctl("count", service, "-l", selector, "-o", "json").out)["items"]
    assert sum(item["total"] for item in counted) == len(numbers)
    doomed = hqctl("delete", "--service", service, "-l", selector, "--dry-run").out
    assert doomed == expected.replace("\n", " would be deleted\n")


def test_a_selector_that_is_wrong_says_where(hqctl: Hqctl) -> None:
    done = hqctl("find", "-l", "tier in t1")
    assert done.code == 2
    assert "-l: 'tier in t1': character 9, before 't1': expected '(' after in" in done.err


def test_labels_become_columns_and_the_header_can_go(hqctl: Hqctl, service: str) -> None:
    done = hqctl("find", service, "-L", "tier,color", "--no-headers")
    assert [line[-2:] for line in done.lines] == [["t1", "-"], ["t2", "-"], ["t3", "-"]]
    assert hqctl("find", service, "-L", "tier").lines[0][-1] == "TIER"


def test_all_labels_can_be_shown(hqctl: Hqctl, service: str) -> None:
    assert hqctl("get", f"{service}-2", "--show-labels").lines[1][-1] == "tier=t2"


@pytest.mark.parametrize("by", ["version", ".meta.version", "{.meta.version}"])
def test_the_order_follows_a_column_or_a_path(hqctl: Hqctl, service: str, by: str) -> None:
    change = documents(service, "1").replace("tier: t1", "tier: changed")
    hqctl("apply", "-f", "-", stdin=change)
    assert [line[0] for line in hqctl("find", service, "--sort-by", by).lines[1:]][-1] == f"{service}-1"


def test_sorting_by_an_unknown_column_names_the_known_ones(hqctl: Hqctl, service: str) -> None:
    done = hqctl("find", service, "--sort-by", "readyness", HQ_SERVER="127.0.0.1:1")  # before anything is asked
    assert (done.code, done.out) == (2, "")
    assert "unknown column readyness" in done.err
    assert "heartbeat" in done.err


def test_a_limited_list_says_that_there_are_more(hqctl: Hqctl, service: str) -> None:
    done = hqctl("find", service, "--limit", "2", "-o", "name", "--sort-by", "id")
    assert done.out == f"{service}-1\n{service}-2\n"
    assert "There are more than 2" in done.err


def test_wide_holds_endpoints_revisions_and_labels(hqctl: Hqctl, service: str) -> None:
    done = hqctl("find", service, "-o", "wide")
    assert done.lines[0][-6:] == ["AGE", "ENDPOINTS", "WEIGHT", "REVISIONS", "LABELS", "VERSION"]
    assert "r1=READY,r0=INSTALLED" in done.lines[1]


def test_calls_are_shown_when_asked_for(hqctl: Hqctl, service: str, server: str) -> None:
    done = hqctl("-v", "get", f"{service}-1")
    assert f"call: GetInstance at {server}: OK" in done.err
    assert f'id: "{service}-1"' in done.err
    assert "call:" not in done.out


def test_a_plain_get_imports_nothing_that_it_does_not_need(server: str, service: str) -> None:
    code = """if True:
        import sys
        from hqctl.main import cli
        try:
            cli(["--server", sys.argv[1], "get", sys.argv[2]])
        except SystemExit as end:
            assert not end.code, end.code
        needless = {"rich", "yaml", "jsonpath", "google.protobuf.json_format", "difflib"}
        print(*needless & set(sys.modules), file=sys.stderr)
    """
    command = [sys.executable, "-c", code, server, f"{service}-1"]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=True)
    assert done.stderr == "\n"
