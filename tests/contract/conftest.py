"""What contract tests may ask for beside tests/conftest.py."""

from tests.support.stores import contract_etcds, place

__all__ = ["contract_etcds", "place"]
