import asyncio
import time
from decimal import Decimal

import pytest

from agentlab.hosted.model_port import ModelFailed, ask
from agentlab.hosted.models_openai import MAX_BODY_BYTES, OpenAIModel
from capture.choice import parse_choice
from tests.hosted.openai_server import completion, delta, endpoint, head, says, streams

ERROR = {"error": {"message": "secret detail"}}
CHOICE = 'I call.\n{"action": "call"}'


def asked(answer, *, timeout=5.0, prompt="What do you do?"):
    """One question to an endpoint that answers so; the completion and what the endpoint was sent."""

    async def run():
        async with endpoint(answer) as server:
            model = OpenAIModel("tiny", base_url=server.url)
            try:
                return await ask(model, prompt, timeout=timeout), server.requests
            finally:
                await model.close()

    return asyncio.run(run())


def failure(answer, *, timeout=5.0):
    with pytest.raises(ModelFailed) as failed:
        asked(answer, timeout=timeout)
    return failed.value


def test_the_prompt_goes_out_exactly_and_the_answer_comes_back_exactly():
    # HA-5, CAP-9
    prompt = 'é 🂡 \r\n\x00 data:image/png;base64,iVBORw0KGgo= {"apiKey": "x"} end'
    answer, requests = asked(says(completion("  Ж\r\n\ttail ")), prompt=prompt)
    assert answer.text == "  Ж\r\n\ttail "
    assert requests[0]["messages"] == [{"role": "user", "content": prompt}]
    assert requests[0]["model"] == "tiny"


def test_model_routing_usage_cost_and_duration_come_with_it():
    # HA-5
    body = completion(CHOICE) | {"provider": "Somewhere"}
    body["usage"]["cost"] = 0.00123
    answer, _ = asked(says(body))
    assert (answer.model, answer.routing) == ("served-1", "127.0.0.1 Somewhere")
    assert (answer.input_tokens, answer.output_tokens, answer.cost) == (11, 7, Decimal("0.00123"))
    assert answer.duration_ms >= 0


def test_usage_that_is_not_given_or_not_a_number_is_unknown_and_not_zero():
    # HA-5
    for usage in (
        None,
        {},
        {"prompt_tokens": "many", "completion_tokens": -1, "cost": "free"},
        {"cost": float("1e12")},
    ):
        answer, _ = asked(says({**completion(CHOICE), "usage": usage}))
        assert (answer.input_tokens, answer.output_tokens, answer.cost) == (None, None, None)


def test_a_streamed_answer_is_put_together_with_its_reasoning_and_usage():
    # HA-5
    answer, _ = asked(
        streams(
            delta(role="assistant", content=""),
            delta(reasoning_content="Let me "),
            delta(reasoning_content="think\u2028."),
            delta(content="I call.\n"),
            delta(content='{"action": "call"}'),
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        )
    )
    assert answer.text == CHOICE
    assert answer.reasoning == "Let me think\u2028."
    assert (answer.input_tokens, answer.output_tokens, answer.model) == (3, 4, "served-1")


def test_a_stream_with_other_line_ends_or_without_its_done_mark_is_read_too():
    # HA-5
    assert asked(streams(delta(content=CHOICE), newline="\r\n"))[0].text == CHOICE
    assert asked(streams(delta(content=CHOICE), done=False))[0].text == CHOICE


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_a_reasoning_channel_stays_apart_from_the_answer(name):
    # HA-5
    answer, _ = asked(says(completion("", **{name: '{"action": "fold"}'})))
    assert (answer.text, answer.reasoning) == ("", '{"action": "fold"}')


def test_no_reasoning_is_none_and_an_empty_one_is_empty():
    # CAP-7
    assert asked(says(completion("x")))[0].reasoning is None
    assert asked(says(completion("x", reasoning="")))[0].reasoning == ""


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ('{"amount": 300}', {"amount": 300}),
        ("", {}),
        ('{"amount": 30', {"unreadable": '{"amount": 30'}),
        ("[1]", {"unreadable": "[1]"}),
    ],
)
def test_a_tool_call_is_read_with_its_arguments(arguments, args):
    # HA-5
    call = {"id": "t", "type": "function", "function": {"name": "raise", "arguments": arguments}}
    answer, _ = asked(says(completion(None, tool_calls=[call])))
    assert (answer.text, answer.tool_call) == ("", {"name": "raise", "args": args})


def test_a_streamed_tool_call_is_put_together():
    # HA-5
    parts = [{"name": "raise", "arguments": ""}, {"arguments": '{"amo'}, {"arguments": 'unt": 300}'}]
    answer, _ = asked(streams(*(delta(tool_calls=[{"index": 0, "function": part}]) for part in parts)))
    assert answer.tool_call == {"name": "raise", "args": {"amount": 300}}
    assert parse_choice(answer.text, answer.reasoning, answer.tool_call).amount == 300


def test_content_in_parts_is_joined():
    # HA-5
    assert (
        asked(says(completion([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}])))[
            0
        ].text
        == "ab"
    )


def test_an_answer_under_the_wrong_content_type_is_read_all_the_same():
    # HA-5
    assert asked(says(completion(CHOICE), content_type="text/html"))[0].text == CHOICE


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (says({"error": {"message": "secret detail"}}, status="429 Too Many Requests"), "rate limited (429)"),
        (
            says({"error": {"message": "secret detail"}}, status="500 Internal Server Error"),
            "the endpoint answered 500",
        ),
        (
            says(b"<h1>secret detail</h1>", status="502 Bad Gateway", content_type="text/html"),
            "the endpoint answered 502",
        ),
        (says({"error": {"message": "secret detail"}}, status="401 Unauthorized"), "the endpoint answered 401"),
        (says({"error": "secret detail"}), "the endpoint answered with an error"),
        (says(b""), "the endpoint's answer is not a completion"),
        (says(b"<h1>secret detail</h1>", content_type="text/html"), "the endpoint's answer is not a completion"),
        (says(b'{"choices": [{"mess'), "the endpoint's answer is not a completion"),
        (says([]), "the endpoint's answer is not a completion"),
        (says({"choices": []}), "the endpoint's answer is not a completion"),
        (says({"choices": "none"}), "the endpoint's answer is not a completion"),
        (
            streams(delta(content="half"), {"error": {"message": "secret detail"}}),
            "the endpoint broke off with an error",
        ),
        (streams(), "the endpoint's answer is not a completion"),
        (says(b"x" * (MAX_BODY_BYTES + 1)), "the answer is too large"),
    ],
)
def test_every_way_to_fail_has_its_reason_and_quotes_nothing(answer, reason):
    # HA-5, HA-6
    assert failure(answer).reason == reason


def test_an_endpoint_that_hangs_before_or_in_the_middle_costs_the_timeout_and_no_more():
    # HA-5
    async def silent(write):
        await asyncio.sleep(60)

    async def stuck(write):
        await write(head(content_type="text/event-stream") + b"data: {}\n\n")
        await asyncio.sleep(60)

    async def dripping(write):
        await write(head())
        while True:
            await write(b" ")
            await asyncio.sleep(0.01)

    for answer in (silent, stuck, dripping):
        began = time.monotonic()
        assert failure(answer, timeout=0.3).reason == "timed out"
        assert time.monotonic() - began < 3


def test_a_connection_that_breaks_in_the_middle_is_a_failure():
    # HA-5
    async def cut(write):
        await write(head("200 OK", "application/json", "Content-Length: 1000") + b'{"choices": [')

    assert failure(cut).reason == "the connection broke"


def test_an_endpoint_that_is_not_there_is_a_failure():
    # HA-5
    async def run():
        model = OpenAIModel("tiny", base_url="http://127.0.0.1:9/v1")
        try:
            await ask(model, "x", timeout=5)
        finally:
            await model.close()

    with pytest.raises(ModelFailed, match="cannot be reached"):
        asyncio.run(run())


def test_no_log_has_the_prompt_or_the_password_in_the_endpoints_address(caplog):
    # HA-5, CAP-14
    caplog.set_level("DEBUG")

    async def run():
        async with endpoint(says(completion("zanzibar"))) as server:
            model = OpenAIModel("tiny", base_url=server.url.replace("//", "//user:hunter2@"), api_key="sk-secret")
            await ask(model, "As Kd in the hole", timeout=5)
            await model.close()

    asyncio.run(run())
    assert caplog.records
    for word in ("hunter2", "sk-secret", "zanzibar", "As Kd"):
        assert word not in caplog.text


def test_one_turn_is_one_request_even_where_the_endpoint_asks_to_be_asked_again():
    # HA-5
    requests = []

    async def run():
        async with endpoint(says({"error": "x"}, status="503 Service Unavailable")) as server:
            model = OpenAIModel("tiny", base_url=server.url)
            with pytest.raises(ModelFailed):
                await ask(model, "x", timeout=5)
            await model.close()
            requests.extend(server.requests)

    asyncio.run(run())
    assert len(requests) == 1
