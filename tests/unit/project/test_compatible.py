"""The comparison of proto/ with the newest release can fail."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tools.check_compatible import ROOT, differences, newest

MESSAGE = 'syntax = "proto3";\npackage x.v1;\nmessage M {\n  string kept = 1;\n  string given_up = 2;\n}\n'


def test_the_first_row_is_the_newest_release() -> None:
    text = f"| version | commit |\n| --- | --- |\n| 0.2.0 | `{'b' * 40}` |\n| 0.1.0 | `{'a' * 40}` |\n"
    assert newest(text) == ("0.2.0", "b" * 40)
    with pytest.raises(SystemExit, match=r"RELEASES\.md has no row"):
        newest("| 0.1.0 | `32a91a26` |\n")


def test_a_field_may_go_only_if_its_number_and_name_are_reserved(tmp_path: Path) -> None:
    (tmp_path / "proto").mkdir()
    proto = tmp_path / "proto" / "x.proto"
    proto.write_text(MESSAGE)
    (tmp_path / "buf.yaml").write_text((ROOT / "buf.yaml").read_text().replace("proto/hqpb/v1/instance", "proto/x"))
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in ("buf.yaml", "proto/x.proto"):
            tar.add(tmp_path / name, name)
    proto.write_text(MESSAGE.replace("  string given_up = 2;\n", ""))
    assert '"given_up" on message "M" was deleted' in differences(tmp_path, file.getvalue())
    proto.write_text(MESSAGE.replace("string given_up = 2;", 'reserved 2;\n  reserved "given_up";'))
    assert differences(tmp_path, file.getvalue()) == ""
