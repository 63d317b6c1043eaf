"""Make the calls of clients/hqclient/sync from the asyncio client's calls, or (--check) say whether it is up to date.

Each `async def` of the classes below becomes a `def` with the same arguments and documentation.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent.parent / "clients" / "hqclient"
SOURCES: Final = {
    "reads": "ReadCalls",
    "writes": "WriteCalls",
    "reports": "ReportCalls",
    "admin": "AdminCalls",
}
_RUFF: Final = Path(sys.executable).with_name("ruff")


def main() -> None:
    stale = []
    for module, name in SOURCES.items():
        path, text = PACKAGE / "sync" / f"{module}.py", generate_module(module, name)
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path))
    if stale:
        sys.exit(f"generated code differs from the asyncio client: {', '.join(stale)}\nRun: make proto")


def generate_module(module: str, name: str) -> str:
    """The source of the synchronous class of an asyncio one."""
    tree = ast.parse((PACKAGE / f"{module}.py").read_text())
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    lines = [
        f'"""The calls of hqclient.{module}, to wait for. Made by tools/gen_sync_client.py."""',
        "",
        *imports,
        "from collections.abc import Iterator",
        f"from hqclient.{module} import {name}",
        "from hqclient.sync.caller import SyncCaller",
        "",
        f"class Sync{name}(SyncCaller):",
        f'    """As hqclient.{module}.{name}."""',
        *_methods(found),
    ]
    return _format("\n".join(lines) + "\n")


def _methods(found: ast.ClassDef) -> Iterator[str]:
    for node in found.body:
        if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield from _method(found.name, node)


def _method(owner: str, node: ast.AsyncFunctionDef) -> Iterator[str]:
    assert node.returns is not None
    returns = ast.unparse(node.returns)
    run = "_iterate" if returns.startswith("AsyncIterator") else "_run"
    names = [arg.arg for arg in node.args.args[1:]] + [f"{arg.arg}={arg.arg}" for arg in node.args.kwonlyargs]
    yield f"    def {node.name}({ast.unparse(node.args)}) -> {returns.replace('AsyncIterator', 'Iterator')}:"
    yield f'        """{ast.get_docstring(node, clean=False)}"""'
    yield f"        return self.{run}({', '.join([f'{owner}.{node.name}', *names])})"


def _format(text: str) -> str:
    for command in (["check", "--fix", "-q", "--select=F401,I"], ["format", "-q"]):
        at = ["--stdin-filename", str(PACKAGE / "sync" / "generated.py"), "-"]
        text = subprocess.run([_RUFF, *command, *at], input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    main()
