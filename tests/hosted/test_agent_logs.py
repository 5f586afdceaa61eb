"""What an agent's process writes into its log, however much a log is asked to say."""

import asyncio

import pytest

from tests.hosted.tables import CALL, answers, one_turn, publish, seated

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_log_of_everything_has_no_frame_no_token_and_no_prompt(capture_redis, tmp_path, caplog):
    # CAP-14
    caplog.set_level("DEBUG")
    publish(strategy="zanzibar", model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            await one_turn(play)
            return play.opening[0].agent_token

    token = asyncio.run(run())
    ours = [record for record in caplog.records if record.name != "websockets.server"]  # the test's own table
    told = "\n".join(record.getMessage() for record in ours)
    assert ours
    for content in (token[:40], "agentToken", "holeCards", "zanzibar", CALL):
        assert content not in told
