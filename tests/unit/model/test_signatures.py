"""Whose a message is: what is signed is believed, and nothing else is."""

from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.model.errors import ConfigurationError, NotAuthentic
from leasehold.model.signatures import (
    CONTENT_TYPE_CHARACTERS_MAX,
    NO_KEYS,
    Mark,
    Proven,
    RequestKeys,
    Verifier,
    derive_role_key,
    read_keys,
    read_mark,
    signer,
)

MASTER = "one-master-key-of-enough-characters"
OTHER = "another-master-key-that-nobody-knows"
TYPE = "application/msgpack"
BODY = b"\x81\xa3sql\xa1x"
ROLES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
ROLES = ROLES.filter(lambda role: len(role.encode()) <= 63)


def signed(keys: RequestKeys, role: str = "till", body: bytes = BODY) -> str:
    return signer(keys, "shop", role)("requests", "", TYPE, body)


def proven(content_type: str, body: bytes = BODY, *, verifier: Verifier | None = None) -> Proven:
    by = verifier or Verifier("shop", read_keys(MASTER).master)
    for signed_before in (False, True):  # as it is read when one like it was valid a moment ago
        if signed_before:
            for keys in (read_keys(MASTER), of_role()):
                if not by.is_open:
                    with suppress(NotAuthentic):
                        by.read("requests", signed(keys), BODY)
        try:
            found: object = by.read("requests", content_type, body)[1]
        except NotAuthentic as error:
            found = error
        try:
            slow: object = by.prove("requests", read_mark(content_type), body)
        except NotAuthentic as error:
            slow = error
        assert str(found) == str(slow)
    if isinstance(slow, NotAuthentic):
        raise slow
    assert isinstance(slow, Proven)
    return slow


def of_role(role: str = "till", number: str = "16384.0", database: str = "shop") -> RequestKeys:
    key = derive_role_key(MASTER.encode(), database, role, number)
    return read_keys(key.to_text())


@given(ROLES, st.binary(max_size=300))
def test_what_is_signed_is_proven(role: str, body: bytes) -> None:
    assert proven(signed(read_keys(MASTER), role, body), body) == Proven(role)
    by_own_key = signed(of_role(role, "16385.3"), role, body)
    assert proven(by_own_key, body) == Proven(role, "16385.3")
    assert len(by_own_key) <= CONTENT_TYPE_CHARACTERS_MAX


@pytest.mark.parametrize("keys", [read_keys(MASTER), of_role()])
def test_any_flipped_bit_is_refused(keys: RequestKeys) -> None:
    """Of the body, and of every character of the content type: it proves nothing then, or at most
    the same (a letter of the media type in upper case is none of its)."""
    content_type = signed(keys)
    for place in range(8 * len(BODY)):
        flipped = bytearray(BODY)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(NotAuthentic):
            proven(content_type, bytes(flipped))
    for place in range(8 * len(content_type)):
        letters = bytearray(content_type.encode())
        letters[place // 8] ^= 1 << place % 8
        changed = letters.decode("latin-1")
        try:
            assert proven(changed) == proven(content_type), changed
            assert read_mark(changed)[1:] == read_mark(content_type)[1:], changed
            assert read_mark(changed).media_type == TYPE, changed
        except NotAuthentic:
            pass


@given(st.text(max_size=500), st.binary(max_size=50))
def test_no_content_type_crashes_the_reader(content_type: str, body: bytes) -> None:
    for text in (content_type, f"{TYPE}; role=x; key=1.0; signature={content_type}"):
        with pytest.raises(NotAuthentic):
            proven(text, body)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(signed(read_keys(OTHER)), id="another master key"),
        pytest.param(
            signer(read_keys(MASTER), "till", "till")("requests", "", TYPE, BODY), id="db"
        ),
        pytest.param(signed(of_role(database="other")), id="a role's key of another database"),
        pytest.param(signed(of_role("clerk")), id="another role's key"),
        pytest.param(signed(of_role()).replace("key=16384.0", "key=16384.1"), id="another number"),
        pytest.param(signed(of_role()).replace("; key=16384.0", ""), id="without its number"),
        pytest.param(signed(of_role()).replace("role=till", "role=leasehold"), id="another's name"),
        pytest.param(signed(of_role()).replace("role=till; ", ""), id="without a name"),
        pytest.param(signed(read_keys(MASTER)).replace("msgpack", "json"), id="another media type"),
        pytest.param(signer(read_keys(MASTER), "shop")("backfill", "", TYPE, BODY), id="queue"),
        pytest.param(f"{signed(read_keys(MASTER))}; role=leasehold", id="two names"),
        pytest.param(f"{TYPE}; role=till", id="a claim"),
        pytest.param(TYPE, id="nothing"),
        pytest.param(f"{TYPE}; signature=AAAA", id="a short signature"),
        pytest.param(f"{TYPE}; key=..; signature={'a' * 64}", id="a number that is none"),
        pytest.param(f"{TYPE}; role=%ff; signature={'a' * 64}", id="no UTF-8"),
        pytest.param(f"{TYPE}; role=a%00b; signature={'a' * 64}", id="a NUL"),
    ],
)
def test_what_is_of_another_is_refused(made: str) -> None:
    with pytest.raises(NotAuthentic):
        proven(made)


def test_no_nul_moves_the_boundary_of_what_is_signed() -> None:
    """A body that begins as the rest of a media type would, were there a NUL in that."""
    signature = signer(read_keys(MASTER), "shop")("requests", "", "a", b"b\0c")
    for text in (signature.replace("a;", "a\0b;"), f"{TYPE}\0; role=till"):
        with pytest.raises(NotAuthentic):
            proven(text, b"c")


def test_without_keys_a_claim_is_believed() -> None:
    claim = signer(NO_KEYS, "shop")("requests", "clerk", TYPE, BODY)
    assert claim == f"{TYPE}; role=clerk"
    assert proven(claim, verifier=Verifier()) == Proven("clerk")
    assert proven(signer(NO_KEYS, "shop")("requests", "", TYPE, BODY), verifier=Verifier()) == (
        Proven("")
    )


def test_what_nobody_signed_is_of_the_role_that_is_set_whatever_it_claims() -> None:
    verifier = Verifier("shop", read_keys(MASTER).master, "guest")
    assert proven(f"{TYPE}; role=leasehold", verifier=verifier) == Proven("guest")
    with pytest.raises(NotAuthentic):
        proven(signed(read_keys(OTHER)), verifier=verifier)


def test_two_master_keys_are_valid_while_the_key_is_changed() -> None:
    both = read_keys(f"{OTHER}, {MASTER}")
    verifier = Verifier("shop", both.master)
    for keys in (both, read_keys(MASTER), read_keys(OTHER), of_role()):
        assert proven(signed(keys), verifier=verifier).role == "till"
    with pytest.raises(NotAuthentic):
        proven(signed(both))  # the newer one signs, which this one does not know


def test_the_machinery_is_proven_by_a_master_key_alone() -> None:
    verifier = Verifier("shop", read_keys(MASTER).master)
    sign = signer(read_keys(MASTER), "shop")
    verifier.prove_machinery("backfill", sign("backfill", "", TYPE, BODY), BODY)
    own = signer(of_role(), "shop", "till")
    for content_type in (TYPE, own("backfill", "", TYPE, BODY), sign("backfill", "x", TYPE, BODY)):
        with pytest.raises(NotAuthentic):
            verifier.prove_machinery("backfill", content_type, BODY)


@pytest.mark.parametrize(
    "text",
    [
        "short",
        f"{MASTER},short",
        ",".join([MASTER] * 5),
        "lhk1.16384.0.AAAA",
        "lhk1.x.y.z",
        f"{derive_role_key(MASTER.encode(), 'shop', 'till', '1.0').to_text()},{MASTER}",
    ],
)
def test_a_key_that_is_none_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_keys(text)
    assert MASTER not in refused.value.message
    assert "short" not in refused.value.message


def test_keys_are_shown_nowhere() -> None:
    for keys in (read_keys(MASTER), of_role()):
        key = keys.of_role.secret if keys.of_role else keys.master[0]
        shown = repr(keys) + repr(Verifier("shop", keys.master))
        assert key.decode("latin-1") not in shown
        assert base64.urlsafe_b64encode(key).decode().rstrip("=") not in shown


def test_a_role_s_key_needs_the_role_s_name() -> None:
    with pytest.raises(ConfigurationError):
        signer(of_role(), "shop")


def test_marks_are_read_as_http_spells_them() -> None:
    assert read_mark("application/json;charset=utf-8; Role = a%20b") == Mark(
        "application/json", "a b"
    )
