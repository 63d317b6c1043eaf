"""One thing has one name on all pages."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_pages_name_files_of_the_private_cas_as_the_security_page_does() -> None:
    page = (DOCS / "security.md").read_text()
    each = [page.replace("$ca-ca", f"{kind}-ca") for kind in ("server", "client")]
    made = {name for text in each for name in re.findall(r"-(?:out|keyout) (\S+\.(?:crt|key))", text)}
    assert {"server-ca.crt", "client-ca.crt", "tls.crt", "tls.key"} <= made
    others = [
        f"{page.name}: {name}"
        for page in DOCS.glob("*.md")
        for name in re.findall(
            r"--(?:cacert|ca|client-ca|tls-cert|tls-key)[ =]([\w.-]+\.(?:crt|cer|pem|key))\b", page.read_text()
        )
        if name not in made
    ]
    assert others == []


def test_tests_named_on_the_page_of_evidence_exist() -> None:
    page = (DOCS / "evidence.md").read_text()
    written = "\n".join(path.read_text() for path in (DOCS.parent / "tests").rglob("*.py"))
    assert [name for name in re.findall(r"`(test_\w+)`", page) if f"def {name}(" not in written] == []
    assert [path for path in re.findall(r"`(tests/[\w/.]+)`", page) if not (DOCS.parent / path).exists()] == []
