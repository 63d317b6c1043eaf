"""The block of docs/production.md that copies etcd to the machines, run as it stands with fake curl and scp."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[3] / "docs/production.md").read_text()
CURL = """#!/bin/sh
for last; do :; done
echo "$last" >asked
mkdir $NAME && echo etcd >$NAME/etcd && echo etcdctl >$NAME/etcdctl && tar -czf $NAME.tar.gz $NAME && rm -r $NAME
{ sha256sum $NAME.tar.gz; echo "0000  $NAME.tar.gz.asc"; } >SHA256SUMS
[ "$WRONG" = 0 ] || echo other >>$NAME.tar.gz
"""


@pytest.mark.parametrize("is_wrong", [False, True])
def test_etcd_is_copied_only_if_its_checksum_is_right(tmp_path: Path, is_wrong: bool) -> None:
    (block,) = re.findall(r"^```\n(etcd=.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    name = re.findall(r"^etcd=(\S+)", block)[0]
    for program, text in (("curl", CURL), ("scp", "#!/bin/sh\ncat $1 $2 >/dev/null && echo $3 >>copied\n")):
        (tmp_path / program).write_text(text)
        (tmp_path / program).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "NAME": name, "WRONG": str(int(is_wrong))}
    done = subprocess.run(
        ["sh", "-c", block], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) is not is_wrong, done.stderr
    version = name.split("-")[1]
    folder = f"https://github.com/etcd-io/etcd/releases/download/{version}"
    assert (tmp_path / "asked").read_text() == f"{folder}/{{{name}.tar.gz,SHA256SUMS}}\n"
    copied = (tmp_path / "copied").read_text().split() if (tmp_path / "copied").exists() else []
    assert copied == ([] if is_wrong else [f"root@10.0.0.{last}:/usr/bin/" for last in (1, 2, 3)])
