"""Who may sit down: signed tokens, each for one connection."""

import base64
import json

import pytest

from agentlab.hosted.tokens import CONTEXT, LIFETIME_MS, TokenChecker, TokenIssuer, TokenRefused

NOW = 1_900_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def issuer() -> TokenIssuer:
    return TokenIssuer()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def checker(issuer: TokenIssuer, clock: Clock) -> TokenChecker:
    return TokenChecker(issuer.public_key, "t1", clock)


def issue(issuer: TokenIssuer, *, table_id: str = "t1", now_ms: int = NOW) -> str:
    return issuer.issue(agent_id="rocky", deployment_id=7, table_id=table_id, now_ms=now_ms)


def test_a_good_token_says_who_it_is_for(issuer: TokenIssuer, checker: TokenChecker) -> None:  # HA-9
    claims = checker.spend(issue(issuer))
    assert (claims.agent_id, claims.deployment_id, claims.table_id) == ("rocky", 7, "t1")


def test_a_token_opens_one_connection(issuer: TokenIssuer, checker: TokenChecker) -> None:  # HA-9
    token = issue(issuer)
    checker.spend(token)
    with pytest.raises(TokenRefused, match="used before"):
        checker.spend(token)
    checker.spend(issue(issuer))


def test_another_tables_token_is_refused(issuer: TokenIssuer, checker: TokenChecker) -> None:  # HA-9
    with pytest.raises(TokenRefused, match="another table"):
        checker.spend(issue(issuer, table_id="t2"))


def test_an_expired_token_is_refused(issuer: TokenIssuer, checker: TokenChecker, clock: Clock) -> None:  # HA-9
    token = issue(issuer)
    clock.now += LIFETIME_MS
    with pytest.raises(TokenRefused, match="expired"):
        checker.spend(token)


def test_a_spent_token_stays_spent_until_it_expires(issuer: TokenIssuer, checker: TokenChecker, clock: Clock) -> None:
    """HA-9"""
    token = issue(issuer)
    checker.spend(token)
    clock.now += LIFETIME_MS - 1
    checker.spend(issue(issuer, now_ms=clock.now))
    with pytest.raises(TokenRefused, match="used before"):
        checker.spend(token)


def test_a_table_that_started_again_refuses_what_it_may_have_seen_before(issuer: TokenIssuer, clock: Clock) -> None:
    """HA-9: it has forgotten which tokens were used."""
    token = issue(issuer)
    TokenChecker(issuer.public_key, "t1", clock).spend(token)
    clock.now += 1
    with pytest.raises(TokenRefused, match="older than this table's start"):
        TokenChecker(issuer.public_key, "t1", clock).spend(token)


def test_a_foreign_issuers_token_is_refused(checker: TokenChecker) -> None:  # HA-9
    with pytest.raises(TokenRefused, match="not signed"):
        checker.spend(issue(TokenIssuer()))


@pytest.mark.parametrize("field", ["agentId", "deploymentId", "tableId", "expiresAt", "nonce"])
def test_every_claim_is_signed(issuer: TokenIssuer, checker: TokenChecker, field: str) -> None:  # HA-9
    payload, _, signature = issue(issuer).partition(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    claims[field] = claims[field] + 1 if isinstance(claims[field], int) else claims[field] + "x"
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    with pytest.raises(TokenRefused, match="not signed"):
        checker.spend(f"{forged}.{signature}")


@pytest.mark.parametrize("token", ["", ".", "a.b", "a", "ä.ö", "e30.", "====.====", "e30.AAAA" * 200, "\x00.\x00"])
def test_what_is_no_token_is_refused_without_being_quoted(checker: TokenChecker, token: str) -> None:  # HA-9
    with pytest.raises(TokenRefused) as refused:
        checker.spend(token)
    assert str(refused.value) == "the token is not signed by this table's issuer"


def test_signed_claims_of_another_shape_are_refused(issuer: TokenIssuer, checker: TokenChecker) -> None:  # HA-9
    payload = b'{"agentId":"rocky"}'
    signature = issuer._key.sign(CONTEXT + payload)
    parts = (base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (payload, signature))
    with pytest.raises(TokenRefused, match="cannot be read"):
        checker.spend(".".join(parts))
