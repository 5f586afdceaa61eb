"""The `agentToken`: who may sit at a table, signed with Ed25519 by whoever seats agents.

Text of a token: base64url(claims as JSON) + "." + base64url(signature), both without padding. The signature covers
`CONTEXT` and the claims' bytes, so that a key used elsewhere too signs nothing that would pass here. A token opens one
connection: its nonce is spent by the first. The table holds only the public key.
"""

import base64
import binascii
import re
import secrets
from collections.abc import Callable
from typing import Annotated

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

CONTEXT = b"agentlab table token 1\n"
LIFETIME_MS = 60_000
"""How long a token may lie about before it is used."""
Identifier = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class TokenRefused(Exception):
    """Says why, without quoting the token."""


class Claims(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a token says. Times are milliseconds since 1970-01-01 UTC."""

    agent_id: Identifier
    deployment_id: int
    table_id: Identifier
    issued_at: int
    expires_at: int
    nonce: Identifier


class TokenIssuer:
    """Signs tokens. It lives where agents are seated, never at the table."""

    def __init__(self, key: Ed25519PrivateKey | None = None) -> None:
        self._key = key or Ed25519PrivateKey.generate()

    @property
    def public_key(self) -> str:
        """The key that a table checks with: 32 bytes as hex."""
        return self._key.public_key().public_bytes_raw().hex()

    def issue(
        self, *, agent_id: str, deployment_id: int, table_id: str, now_ms: int, lifetime_ms: int = LIFETIME_MS
    ) -> str:
        """A fresh token, for one connection."""
        claims = Claims(
            agent_id=agent_id,
            deployment_id=deployment_id,
            table_id=table_id,
            issued_at=now_ms,
            expires_at=now_ms + lifetime_ms,
            nonce=secrets.token_urlsafe(16),
        )
        payload = msgspec.json.encode(claims)
        return f"{_to_text(payload)}.{_to_text(self._key.sign(CONTEXT + payload))}"


class TokenChecker:
    """Checks tokens for one table and remembers the spent ones until they expire.

    A table that starts again under its old id has forgotten what was spent, so it refuses whatever was issued before
    it started.
    """

    def __init__(self, public_key: str, table_id: str, clock_ms: Callable[[], int]) -> None:
        self._key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        self._table_id = table_id
        self._clock_ms = clock_ms
        self._started_at = clock_ms()
        self._spent: dict[str, int] = {}

    def spend(self, token: str) -> Claims:
        """The claims of a good token, which is then used up. Raises TokenRefused."""
        claims, now = self._read(token), self._clock_ms()
        if claims.table_id != self._table_id:
            raise TokenRefused("the token is for another table")
        if claims.expires_at <= now:
            raise TokenRefused("the token has expired")
        if claims.issued_at < self._started_at:
            raise TokenRefused("the token is older than this table's start; ask for a fresh one")
        self._spent = {nonce: until for nonce, until in self._spent.items() if until > now}
        if claims.nonce in self._spent:
            raise TokenRefused("the token was used before")
        self._spent[claims.nonce] = claims.expires_at
        return claims

    def _read(self, token: str) -> Claims:
        """The claims, once the signature holds. Nothing that is not signed is parsed."""
        payload_text, _, signature_text = token.partition(".")
        try:
            payload, signature = _to_bytes(payload_text), _to_bytes(signature_text)
            self._key.verify(signature, CONTEXT + payload)
        except (ValueError, InvalidSignature):
            raise TokenRefused("the token is not signed by this table's issuer") from None
        try:
            return msgspec.json.decode(payload, type=Claims)
        except msgspec.MsgspecError:
            raise TokenRefused("the token's claims cannot be read") from None


def _to_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _to_bytes(text: str) -> bytes:
    """Raises ValueError for anything but unpadded base64url."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise ValueError("not base64url")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise ValueError("not base64url") from None
