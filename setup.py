"""What pyproject.toml cannot say.

The servers need the library of their own version. With SERVING_COMPILE=1 the transport is compiled by mypyc
(decision 104).
"""

import os
from pathlib import Path

from setuptools import Extension, setup

# Modules of serving/ on the path of every request. mypyc wants the bases of a compiled class compiled, too.
_COMPILED = (
    "head.py",
    "h1/*.py",
    "h2/*.py",
    "transport/*.py",
    "limiting/*.py",
    "encoding/envelopes.py",
    "encoding/media.py",
    "encoding/parsing.py",
)
# A call's bases are not compiled; limits are read from flags by their annotations.
_INTERPRETED = {"__init__.py", "call.py", "limits.py"}


def _extensions() -> list[Extension]:
    if os.environ.get("SERVING_COMPILE") != "1":
        return []
    from mypyc.build import mypycify

    found = sorted(path for pattern in _COMPILED for path in Path("serving").glob(pattern))
    sources = [str(path) for path in found if path.name not in _INTERPRETED]
    # What is not installed here has the type Any; types are checked by `make check`.
    options = ("--config-file=", "--explicit-package-bases", "--ignore-missing-imports", "--follow-imports=silent")
    made: list[Extension] = mypycify([*options, *sources], debug_level="0", group_name="serving")
    return made


def _requirements() -> list[str]:
    lines = Path("requirements/run.in").read_text().splitlines()
    others = [line.partition("#")[0].strip() for line in lines]
    return [*filter(None, others), f"hq-client=={Path('VERSION').read_text().strip()}"]


setup(ext_modules=_extensions(), install_requires=_requirements())
