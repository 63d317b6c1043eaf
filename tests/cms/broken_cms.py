"""`python -m tests.cms.broken_cms BUG serve ...`: the CMS with one of the bugs of test_seeded_bugs.py."""

from __future__ import annotations

import sys

import pytest

from cms.main import cli
from tests.cms import test_seeded_bugs

if __name__ == "__main__":
    getattr(test_seeded_bugs, sys.argv.pop(1))(pytest.MonkeyPatch())
    cli()
