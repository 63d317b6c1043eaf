"""Copy the public .proto files to a folder: `python -m tools.public_protos DIR` (`make protos OUT=DIR`).

Public is what defines a service, and what that imports; what servers store, and what they have in common, is not.
`buf generate DIR` or protoc make clients of it.
"""

import re
import shutil
import sys
from pathlib import Path

PROTO = Path(__file__).resolve().parent.parent / "proto"
_IMPORTS = re.compile(r'^import "(?!google/)(.+)";', re.MULTILINE)
_SERVICE = re.compile(r"^service ", re.MULTILINE)


def main() -> None:
    [target] = sys.argv[1:]
    names = public_files(PROTO)
    for name in names:
        path = Path(target) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROTO / name, path)
    print(f"{len(names)} public .proto files in {target}")


def public_files(folder: Path) -> list[str]:
    """Names of the public files, relative to the folder."""
    texts = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.proto")}
    todo = [name for name, text in texts.items() if _SERVICE.search(text)]
    public: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in public:
            public.add(name)
            todo += _IMPORTS.findall(texts[name])
    return sorted(public)


if __name__ == "__main__":
    main()
