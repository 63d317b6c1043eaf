"""docs/architecture.md shows what the code imports: packages, layers of hq/, and the servers that each one calls."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
LINTED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
# Who imports one of these calls that server; Wall-E has a client of its own for the CMS's HTTP API.
APIS = {
    "hq": ("hqpb", "hqclient"),
    "cms": ("cmspb.v1", "walle.approval"),
    "nanny": ("nannypb",),
    "walle": ("wallepb",),
    "recorder": ("historypb",),
}
SERVES = {"gate": "hq", "names": "hq"}  # they answer as HQ does


@pytest.mark.parametrize(
    ("name", "folder"),
    [(name, name) for name in ("cms", "nanny", "walle", "recorder", "console")]
    + [("gate", "federated"), ("names", "gateways")],
)
def test_the_picture_draws_the_servers_that_each_one_calls(name: str, folder: str) -> None:
    drawn = {
        SERVES.get(target, target)
        for targets in re.findall(rf"^ +{name}\b.*--> (.+)$", PAGE, re.MULTILINE)
        for target in targets.split(" & ")
    }
    files = [path for path in (ROOT / folder).rglob("*.py") if "replay" not in path.name]  # commands, not the server
    code = "\n".join(path.read_text() for path in files)
    called = {
        api
        for api, packages in APIS.items()
        if any(re.search(rf"^(?:from|import) {re.escape(package)}\b", code, re.MULTILINE) for package in packages)
    }
    assert drawn - {"etcd"} == called - {name}


def test_every_package_is_on_the_page() -> None:
    named = {word.rstrip("/").rpartition("/")[2] for word in re.findall(r"`([\w/]+)`", PAGE)}
    packages = {package for package in LINTED["root_packages"] if not package.endswith("pb")}
    assert packages <= named


def test_packages_of_hq_are_drawn_in_the_order_of_their_imports() -> None:
    [layers] = [contract["layers"] for contract in LINTED["contracts"] if contract.get("containers") == ["hq"]]
    drawing = re.search(r"each importing only those below it:\n\n```\n(.*?)```", PAGE, re.DOTALL)
    assert drawing is not None
    drawn = drawing[1].splitlines()
    assert len(drawn) == len(layers)
    for line, layer in zip(drawn, layers, strict=True):
        names = [name.strip() for name in re.split(r"[:|]", layer)]
        assert line.split()[: len(names)] == names


def test_the_drawing_of_a_folder_fits_on_a_page() -> None:
    """Modules and packages at one level: with more, the arrows between them cannot be followed on paper."""
    packages = [package for package in LINTED["root_packages"] if not package.endswith("pb")]
    tops = [top for package in packages for top in (ROOT / package, ROOT / "clients" / package) if top.is_dir()]
    folders = {path.parent for top in tops for path in top.rglob("*.py")}
    boxes = {folder: len({*folder.glob("*.py"), *(one.parent for one in folder.glob("*/*.py"))}) for folder in folders}
    assert {str(folder): many for folder, many in boxes.items() if many > 26} == {}  # 25 and __init__.py


def test_the_walks_name_existing_files_and_functions() -> None:
    steps = re.findall(r"^\d\. (.*(?:\n   .*)*)", PAGE, re.MULTILINE)
    assert len(steps) > 20
    for step in steps:
        words = re.findall(r"`([\w./]+)`", step)
        first = ROOT / words[0]
        files = [ROOT / word if "/" in word else first.parent / word for word in words if re.search(r"/|\.py$", word)]
        assert [file for file in files if not file.exists()] == [], step
        code = "".join(file.read_text() for file in files if file.is_file())
        names = [word.rpartition(".")[2] for word in words if not re.search(r"/|\.py$", word)]
        assert [name for name in names if not re.search(rf"(?:def|class) {name}\b", code)] == [], step
