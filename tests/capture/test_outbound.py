"""The second door: a turn's messages, without credentials, for as long as the turn lasts and no longer."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.frozen import freeze
from capture.outbound import CREDENTIALS, REDACTED, TurnOutbound, redact

SECRET = "zzz-9f3c-zzz"
ENTER = {"type": "enter", "tableId": "T-4", "agentToken": SECRET}
FOLD = {"type": "action", "action": "fold"}
RAISE = {"type": "action", "action": "raise", "amount": 200}


def spellings(name: str) -> st.SearchStrategy[str]:
    """The name in other case, with dashes and underscores anywhere."""
    letter = st.tuples(st.booleans(), st.sampled_from(["", "-", "_", "__"]))
    return st.lists(letter, min_size=len(name), max_size=len(name)).map(
        lambda marks: "".join(dash + (c.upper() if up else c) for c, (up, dash) in zip(name, marks, strict=True))
    )


credential_names = st.sampled_from(sorted(CREDENTIALS)).flatmap(spellings)
other_names = st.text(max_size=8).filter(
    lambda name: name.casefold().replace("-", "").replace("_", "") not in CREDENTIALS
)
# A secret stands at a credential's name, anywhere in a message, also inside JSON text; nothing else is secret.
hidden = st.just(SECRET) | st.lists(st.just(SECRET), max_size=2) | st.dictionaries(st.text(max_size=3), st.just(SECRET))
open_values = st.none() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.dictionaries(other_names, inner, max_size=3)
    with_secret = st.tuples(pairs, st.dictionaries(credential_names, hidden, max_size=2)).map(
        lambda two: two[0] | two[1]
    )
    return with_secret | st.lists(inner, max_size=3) | with_secret.map(json.dumps) | with_secret.map(freeze_as_text)


def freeze_as_text(value: Any) -> str:
    return json.dumps({"payload": json.dumps(value, indent=1)}, ensure_ascii=False)


messages = st.recursive(open_values, nested, max_leaves=12)


@given(messages)
def test_no_secret_at_a_credentials_name_is_left_at_any_depth(message: Any) -> None:  # CAP-6
    assert SECRET.encode() not in freeze(redact(message))


@given(messages)
def test_redacting_twice_changes_nothing_more(message: Any) -> None:  # CAP-6
    once = redact(message)
    assert freeze(redact(once)) == freeze(once)


@given(st.recursive(open_values, lambda inner: st.lists(inner) | st.dictionaries(other_names, inner), max_leaves=12))
def test_a_message_without_credentials_is_left_as_it_is(message: Any) -> None:  # CAP-6
    assert redact(message) == message
    assert redact(json.dumps(message)) == json.dumps(message)


@given(st.text())
def test_any_text_is_looked_through_without_an_error(text: str) -> None:  # CAP-6
    redact(text)
    redact(f'{{"{text}": "{text}", "to\\u006ben": {text}')


@pytest.mark.parametrize("name", sorted(CREDENTIALS))
def test_each_credential_keeps_its_field_and_loses_its_value(name: str) -> None:  # CAP-6
    spelt = [name, name.upper(), "-".join(name), "_".join(name)]
    assert redact(dict.fromkeys(spelt, SECRET)) == dict.fromkeys(spelt, REDACTED)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('{"agentToken":"zzz","n":1.10}', '{"agentToken":"[redacted]","n":1.10}'),
        ('{"a":"{\\"apiKey\\":\\"zzz\\"}"}', '{"a":"{\\"apiKey\\":\\"[redacted]\\"}"}'),
        ('{"a":"{\\u0022apiKey\\u0022:\\u0022zzz\\u0022}"}', '{"a":"{\\"apiKey\\":\\"[redacted]\\"}"}'),
        ('{\\"apiKey\\": \\"zzz\\"}', '{\\"apiKey\\": \\"[redacted]\\"}'),
        ('{"agent\\u0054oken":["zzz"]}', '{"agent\\u0054oken":"[redacted]"}'),
        ('cut off {"x-api-key": "zz', 'cut off {"x-api-key": "[redacted]"'),
        ('{"cookie":{"a":"zzz"', '{"cookie":"[redacted]"'),
        ('an odd quote: 5" {"token" : 7}', 'an odd quote: 5" {"token" : "[redacted]"}'),
        ('{"a":"\\x {\\"token\\":\\"zzz\\"}"}', '{"a":"\\\\x {\\"token\\":\\"[redacted]\\"}"}'),
        ('[{"secret":null}]', '[{"secret":"[redacted]"}]'),
    ],
)
def test_credentials_inside_json_text_are_cut_out_and_the_rest_stays(text: str, clean: str) -> None:  # CAP-6
    assert redact(text) == clean
    assert redact({"payload": text}) == {"payload": clean}
    assert redact(text.encode()) == clean.encode()


@pytest.mark.parametrize(
    "text",
    [
        "the author had a long session, a token bet and a secret weapon",
        'he said "token": then folded',
        "key hand: password, cookie, authorization",
        '{"tokens":3,"keyHand":"AK","session":"session-000","secretWeapon":"x"}',
        "db://user:pass@host/x",
    ],
)
def test_innocent_words_stay(text: str) -> None:  # CAP-6
    assert redact(text) == text


HOSTILE = [
    '\\"',
    '"x',
    '{"token":',
    '{"token":1,',
    '\\"token\\":1,',
    '{"a":"\\"',
    '"token" ',
    '"a":"b\\\\"',
    '"' + "\\" * 9,
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_text_is_looked_through_in_time_that_grows_with_its_length(unit: str) -> None:  # CAP-6
    text = unit * (300_000 // len(unit))
    assert SECRET not in redact(text + '{"token":"' + SECRET)


def test_the_marker_quotes_nothing_and_the_argument_is_not_changed() -> None:  # CAP-6
    message = {"deep": [{"password": "db://u:zzz@h/x"}]}
    assert redact(message) == {"deep": [{"password": REDACTED}]}
    assert message == {"deep": [{"password": "db://u:zzz@h/x"}]}
    assert not set(REDACTED) & set("zu@/")


class Enter(msgspec.Struct, rename="camel"):
    agent_token: str
    name: str = "\ud83e"


def test_a_struct_hides_no_credential_nor_does_a_lone_surrogate() -> None:  # CAP-6
    assert redact(Enter(SECRET)) == {"agentToken": REDACTED, "name": "\ud83e"}
    assert redact({"\ud83e": 1, "token": SECRET, 7: {"token": SECRET}, ("a",): [{"token": SECRET}]}) == {
        "\ud83e": 1,
        "token": REDACTED,
        7: {"token": REDACTED},
        ("a",): [{"token": REDACTED}],
    }


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('{"a":"\ud83e","token":"zzz"}', '{"a":"\ud83e","token":"[redacted]"}'),
        ('{"\ud83e":{"apiKey":"zzz"}}', '{"\ud83e":{"apiKey":"[redacted]"}}'),
        ('\ud83e {\\"token\\":\\"zzz\\"}', '\ud83e {\\"token\\":\\"[redacted]\\"}'),
        (b'\xff{"token":"zzz"}\xfe', b'\xff{"token":"[redacted]"}\xfe'),
        ([b"\xff", {"b": bytearray(b'{"secret":"zzz"}')}], [b"\xff", {"b": b'{"secret":"[redacted]"}'}]),
    ],
    ids=["beside", "as a name", "before", "bytes", "a bytearray"],
)
def test_text_that_is_no_utf8_hides_no_credential(text: Any, clean: Any) -> None:  # CAP-6
    assert redact(text) == clean
    assert redact({"deep": [text]}) == {"deep": [clean]}


def test_a_message_too_deep_to_look_through_is_not_kept() -> None:  # CAP-6
    deep: Any = {"token": SECRET}
    for _ in range(900):
        deep = [deep]
    assert SECRET.encode() not in freeze(redact(deep))
    cycle: dict[str, Any] = {"token": SECRET}
    cycle["self"] = cycle
    assert SECRET.encode() not in freeze(redact(cycle))


def test_a_turn_has_the_messages_that_went_out_in_it_in_order() -> None:  # CAP-5
    outbound = TurnOutbound()
    outbound.start_turn()
    outbound.add(FOLD)
    outbound.add(RAISE)
    assert outbound.take() == [FOLD, RAISE]


def test_enter_sit_stand_and_post_blind_outside_a_turn_are_not_kept() -> None:  # CAP-5
    outbound = TurnOutbound()
    for kind in ("enter", "sit", "post_blind"):
        outbound.add({"type": kind, "agentToken": SECRET})
    outbound.start_turn()
    outbound.add(FOLD)
    assert outbound.take() == [FOLD]
    outbound.add({"type": "stand"})
    outbound.refused("too late")
    assert outbound.take() == []


def test_a_failed_turns_safe_action_is_not_on_the_next_turn() -> None:  # CAP-5
    outbound = TurnOutbound()
    outbound.start_turn()
    outbound.add(FOLD)  # inference failed: nobody takes this turn
    outbound.start_turn()
    outbound.add(RAISE)
    assert outbound.take() == [RAISE]


def test_a_turn_that_sent_nothing_is_empty() -> None:  # CAP-7
    outbound = TurnOutbound()
    outbound.start_turn()
    assert outbound.take() == []


def test_a_refusal_stands_after_what_was_refused() -> None:  # CAP-5
    outbound = TurnOutbound()
    outbound.start_turn()
    outbound.add(RAISE)
    outbound.refused("not your turn")
    assert outbound.take() == [RAISE, {"refused": "not your turn"}]


def test_what_was_sent_is_kept_as_it_was_sent_and_without_its_credentials() -> None:  # CAP-6
    outbound = TurnOutbound()
    outbound.start_turn()
    message = {**ENTER, "note": ["a"]}
    outbound.add(message)
    message["note"].append("b")  # type: ignore[attr-defined]
    assert message["agentToken"] == SECRET
    assert outbound.take() == [{**ENTER, "agentToken": REDACTED, "note": ["a"]}]


def test_a_reused_message_is_two_messages() -> None:  # CAP-5
    outbound, message = TurnOutbound(), {"v": 1}
    outbound.start_turn()
    outbound.add(message)
    message["v"] = 2
    outbound.add(message)
    assert outbound.take() == [{"v": 1}, {"v": 2}]


def test_a_bare_value_that_only_begins_like_a_number_is_cut_out_whole() -> None:  # CAP-6
    assert redact('{"token": 12ab-34, "action": "fold"}') == '{"token": "[redacted]", "action": "fold"}'
    assert redact('{"token":true}') == '{"token":"[redacted]"}'
