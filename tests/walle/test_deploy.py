"""The configuration files that the page shows can be loaded."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.certificates import Authority
from walle.healing.operation import VERIFY_MS
from walle.process.config import load

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/walle.md").read_text()


def test_the_example_configuration_loads() -> None:
    assert load(ROOT / "examples/walle/walle.yaml").operations


def test_the_destinations_on_the_page_load(tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(redfish:.*?)```", PAGE, re.DOTALL)
    assert found is not None
    (tmp_path / "walle.yaml").write_text(found[1])
    for name in ("bmc-password", "cms-token"):
        (tmp_path / name).write_text("secret\n")
    ca = Authority(tmp_path).cert.read_text()
    for name in ("bmc-ca.pem", "ca.pem"):
        (tmp_path / name).write_text(ca)
    listed = load(tmp_path / "walle.yaml").destinations
    assert (listed.controllers[0].password, listed.cms[0].token) == ("secret", "secret")
    assert listed.hook_at("https://hooks.example.net/services/T1") is not None


def test_the_page_says_how_long_each_step_has_to_help() -> None:
    assert f"within {VERIFY_MS // 60_000} minutes" in PAGE
