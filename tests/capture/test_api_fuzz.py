"""The API against its own schema, with generated requests, good and bad."""

from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import negative_data_rejection

from agentlab.common.throttle import FailureLimit
from capture import service_key
from capture.pinning import pin
from tests.capture.making import HAND, TABLE, play, turn

HEADERS = {"x-service-key": "test-service-key"}
OPERATIONS = ["GET hand", "GET hand-all", "GET hands", "GET neighbours", "GET neighbours-all", "GET today"]
OPERATIONS += ["POST promote", "POST unpin"]
FEW = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,  # a run that fails must fail again
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def schema(transactional_db: None, capture_redis: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(service_key, "WRONG_KEYS", FailureLimit("fuzz", limit=10**6, seconds=1))  # it tries wrong keys
    settings.AGENT_CAPTURE_SERVICE_KEY = HEADERS["x-service-key"]
    play([turn("rocky", 0), turn("nit", 1), turn("rocky", 2, knowledge=None, decision=[])])
    pin(TABLE, HAND, agent_id="nit", actor=None)
    return schemathesis.openapi.from_wsgi("/internal/schema", get_wsgi_application(), headers=HEADERS)


def test_the_schema_knows_every_operation(schema: Any) -> None:  # SF-4
    found = {operation.ok().label.replace("/internal/agent-capture/", "") for operation in schema.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_one_that_the_schema_promises(schema: Any, operation: str, mode: GenerationMode) -> None:
    # SF-4
    method, path = operation.split()
    strategy = schema[f"/internal/agent-capture/{path}"][method].as_strategy(generation_mode=mode)
    answered = []

    @FEW
    @given(case=strategy)
    def ask(case: Any) -> None:
        # A name that is not in the schema is ignored in a query, as it is everywhere on the web.
        response = case.call_and_validate(headers=HEADERS, excluded_checks=[negative_data_rejection])
        answered.append(response.status_code)

    ask()
    assert answered
    assert max(answered) < 500


def test_a_hand_that_there_is_answers_as_promised(schema: Any) -> None:  # RD-1, SF-4
    for path, query in [
        ("hand", {"agentId": "rocky"}), ("hand", {"agentId": "nit"}), ("hand-all", {}),
    ]:  # fmt: skip
        asked = {"tableId": TABLE, "handNumber": HAND} | query
        case = schema[f"/internal/agent-capture/{path}"]["GET"].Case(query=asked)
        assert case.call_and_validate(headers=HEADERS).json()["turns"]
