"""Rows of the first schema carried into the present one."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from factory.models import AgentAttempt

FIRST = [("factory", "0001_initial")]


def migrate(target: list[tuple[str, str]]) -> Any:
    executor = MigrationExecutor(connection)
    executor.migrate(target)
    return MigrationExecutor(connection).loader.project_state(target).apps


@pytest.fixture
def first_schema(transactional_db: None) -> Iterator[Any]:
    latest = [node for node in MigrationExecutor(connection).loader.graph.leaf_nodes() if node[0] == "factory"]
    yield migrate(FIRST)
    migrate(latest)


def columns() -> set[str]:
    with connection.cursor() as cursor:
        return {column.name for column in connection.introspection.get_table_description(cursor, "agent_attempts")}


def test_attempts_of_the_first_schema_read_as_not_recorded(first_schema: Any) -> None:  # FA-3
    assert "task_prompt" not in columns()
    assert "agent_attempt_inputs" not in connection.introspection.table_names()
    run = first_schema.get_model("factory", "FactoryRun").objects.create(workflow="ask", provider="pi")
    for number, prompt in enumerate(("### prompt\n\nDo it", "", None), 1):
        first_schema.get_model("factory", "AgentAttempt").objects.create(
            attempt_id=f"{number:032}", run=run, number=number, phase="ask", provider="pi", user_prompt=prompt
        )
    latest = [node for node in MigrationExecutor(connection).loader.graph.leaf_nodes() if node[0] == "factory"]
    migrate(latest)
    rows = list(AgentAttempt.objects.order_by("number"))
    assert [row.user_prompt for row in rows] == ["### prompt\n\nDo it", "", None]
    for row in rows:
        assert row.input_coverage == "not_recorded"
        assert row.task_prompt is row.send_kind is row.turn_index is row.input_packet_version is None
        assert row.previous_turn_attempt_id is row.retry_of_attempt_id is None
        assert row.declared_input_count is row.captured_input_count is row.omitted_input_count is None
        assert not row.inputs.exists()


def test_the_way_back_keeps_the_attempts(first_schema: Any) -> None:  # FA-3
    latest = [node for node in MigrationExecutor(connection).loader.graph.leaf_nodes() if node[0] == "factory"]
    run = first_schema.get_model("factory", "FactoryRun").objects.create(workflow="ask", provider="pi")
    migrate(latest)
    AgentAttempt.objects.create(attempt_id="1" * 32, run_id=run.pk, number=1, phase="ask", provider="pi")
    old = migrate(FIRST)
    assert old.get_model("factory", "AgentAttempt").objects.get().phase == "ask"


@pytest.mark.django_db
def test_a_row_written_by_code_of_the_first_schema_is_not_recorded() -> None:  # FA-3
    from factory.models import FactoryRun

    run = FactoryRun.objects.create(workflow="ask", provider="pi")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO agent_attempts (attempt_id, run_id, number, phase, provider, model, launch_command, state,"
            " failure, error) VALUES (%s, %s, 1, 'ask', 'pi', '', '', 'succeeded', '', '')",
            ["2" * 32, run.pk],
        )
    assert AgentAttempt.objects.get().input_coverage == "not_recorded"
