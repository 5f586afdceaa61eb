"""What looks like a secret in a tool's words is hidden on its page; what only resembles one is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.masking import without_secrets
from factory.outcomes import MASK

SECRETS = [
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "ghp_" + "a" * 36,
    "github_pat_" + "a1_" * 10,
    "sk-ant-api03-" + "x" * 30,
    "xoxb-" + "1234567890-abc",
    "AIza" + "b" * 35,
    "hf_" + "c" * 34,
    "eyJhbGciOiJI." + "eyJzdWIiOiIx." + "c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc+/=\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_well_known_shape_is_hidden_wherever_it_stands(secret: str) -> None:  # FA-13 SF-2
    assert without_secrets(f"before {secret} after") == (f"before {MASK} after", 1)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("DB_PASSWORD=hunter2hunter2", f"DB_PASSWORD={MASK}"),
        ("export AWS_SECRET_ACCESS_KEY='abcdef'", f"export AWS_SECRET_ACCESS_KEY='{MASK}'"),
        (".env:3:API_KEY=abcdef123", f".env:3:API_KEY={MASK}"),
        ("postgresql://root:hunter2@db/x", f"postgresql://{MASK}@db/x"),
        ("Authorization: Bearer abcdefghij0123456789", f"Authorization: {MASK}"),
    ],
)
def test_a_value_is_hidden_and_its_name_stays(line: str, shown: str) -> None:  # FA-13
    assert without_secrets(line) == (shown, 1)


@pytest.mark.parametrize(
    "line",
    [
        *("MAX_TOKENS=128000", "TOKENIZERS_PARALLELISM=false", "PASSWORD=$DB_PASSWORD", "a token of 16 characters"),
        *(
            "the key hand",
            "https://example.com/a:b",
            "user@example.com",
            "PATH=/usr/bin:/bin",
            "sk-learn",
            "sk-a-branch-with-many-words",
            "PASSWORD=",
        ),
        *("GOOGLE_APPLICATION_CREDENTIALS=/home/ada/key.json", "a bearer of bad news", "commit 9f2c1e" + "0" * 34),
    ],
)
def test_innocent_words_stay(line: str) -> None:  # FA-13
    assert without_secrets(line) == (line, 0)


@given(st.text())
def test_text_without_a_secret_is_itself(text: str) -> None:
    shown, hidden = without_secrets(text)
    assert hidden or shown == text
