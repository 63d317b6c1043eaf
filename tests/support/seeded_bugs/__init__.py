"""Bugs that tests put into HQ to see whether tests/checker finds them. Nothing here is ever part of what is shipped.

`ALL` has every bug; each stands in a file of its kind and replaces one method of HQ for as long as a test lasts.
"""

from tests.support.seeded_bugs import following, gateway, hearing, reading, watching, writing
from tests.support.seeded_bugs.bug import BUGS

ALL = BUGS
__all__ = ["ALL", "following", "gateway", "hearing", "reading", "watching", "writing"]
