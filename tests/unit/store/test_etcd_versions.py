"""Which versions of etcd are fit for production data."""

from __future__ import annotations

import pytest

from store.etcd_versions import advice


@pytest.mark.parametrize("version", ["3.4.38", "3.5.23", "3.5.33", "3.6.5", "3.7.0", "3.8.1", "memory", ""])
def test_there_is_no_advice_for_a_version_without_known_faults(version: str) -> None:
    assert not advice(version)


@pytest.mark.parametrize(
    ("version", "newer"),
    [("3.4.23", "3.4.38"), ("3.5.1", "3.5.23"), ("3.5.13", "3.5.23"), ("3.6.4", "3.6.5"), ("3.3.27", "3.5")],
)
def test_the_advice_names_the_first_sound_patch_of_the_same_line(version: str, newer: str) -> None:
    assert advice(version).endswith(f"upgrade to {newer} or newer")
