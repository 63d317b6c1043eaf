"""Sealed cookies can be read by the console alone, and only for the purpose they were sealed for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.site.cookies import BROWSER, FLASH, SESSION, Jar, read_cookies
from console.site.sealing import MAX_COOKIE_BYTES, Seal, TooLong, expires_at, subject

SEAL = Seal(b"k" * 32)


@given(st.text(max_size=300))
def test_a_sealed_text_can_be_opened_but_not_read(text: str) -> None:
    sealed = SEAL.seal("session", text)
    assert SEAL.open("session", sealed) == text
    if len(text) > 3:
        assert text not in sealed


@given(st.text())
def test_a_text_that_was_never_sealed_opens_as_empty(text: str) -> None:
    assert SEAL.open("session", text) == ""


def test_a_seal_opens_as_empty_for_another_purpose_or_key() -> None:
    sealed = SEAL.seal("session", "token")
    assert SEAL.open("flash", sealed) == ""
    assert Seal(b"other" * 8).open("session", sealed) == ""


def test_a_changed_cookie_opens_as_empty() -> None:
    sealed = SEAL.seal("session", "token")
    assert SEAL.open("session", sealed[:-2] + ("AA" if sealed[-2:] != "AA" else "BB")) == ""


def test_a_cookie_too_large_for_browsers_is_refused() -> None:
    with pytest.raises(TooLong):
        SEAL.seal("session", "".join(str(number * 7_919) for number in range(3_000)))
    assert MAX_COOKIE_BYTES <= 4_096


def test_a_form_token_belongs_to_one_browser() -> None:
    assert SEAL.is_form_token("a" * 32, SEAL.form_token("a" * 32))
    assert not SEAL.is_form_token("b" * 32, SEAL.form_token("a" * 32))
    assert not SEAL.is_form_token("", SEAL.form_token(""))


@pytest.mark.parametrize("word", ["", "a.b.c", "a.bm90IGpzb24.c", "a.W10.c", "no dots", "a.e30.c"])
def test_a_token_without_claims_is_no_error(word: str) -> None:
    assert expires_at(word) is None
    assert subject(word) == ""


def test_cookies_are_read_as_browsers_send_them() -> None:
    assert read_cookies(b"a=1; b=2=3;c ; a=4") == {"a": "1", "b": "2=3", "c": ""}


def test_a_jar_recognizes_a_browser_and_shows_a_message_once() -> None:
    first = Jar(SEAL, b"")
    first.say("done", "it <worked>")
    sent = dict(value.decode().partition(";")[0].split("=", 1) for _, value in first.headers)
    second = Jar(SEAL, "; ".join(f"{name}={value}" for name, value in sent.items()).encode())
    assert second.flash == ("done", "it <worked>")
    assert second.browser == sent[BROWSER]
    assert [value.decode().partition("=")[0] for _, value in second.headers] == [FLASH]
    assert b"Max-Age=0" in second.headers[0][1]


@pytest.mark.parametrize("browser", ["x", "../../etc", "A" * 32, "0" * 33])
def test_a_made_up_name_of_a_browser_is_replaced(browser: str) -> None:
    assert Jar(SEAL, f"{BROWSER}={browser}; {SESSION}=junk".encode()).browser != browser
