"""What the engine may not know, and who may write the trace: read off the code."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ROOM = ROOT / "agentlab" / "persona"
ENGINE = [
    "answers",
    "deciding",
    "events",
    "importance",
    "planning",
    "ports",
    "probes",
    "prompting",
    "reaction",
    "reflection",
    "retrieval",
    "rules",
    "state",
    "trace",
    "turn",
    "values",
    "vectors",
]
FOREIGN = [
    "django",
    "openai",
    "anthropic",
    "cohere",
    "mistralai",
    "google",
    "wordllama",
    "sentence_transformers",
    "torch",
    "transformers",
    "langchain",
    "llama_index",
    "mem0",
    "letta",
    "chromadb",
    "qdrant_client",
    "pinecone",
    "faiss",
    "weaviate",
    "pgvector",
    "dask",
    "distributed",
    "redis",
    "requests",
    "httpx",
]
WRITES = [
    "create",
    "bulk_create",
    "get_or_create",
    "update_or_create",
    "update",
    "bulk_update",
    "delete",
    "save",
    "acreate",
    "abulk_create",
    "aupdate",
]
TABLE = "study_trace"


@pytest.mark.parametrize("module", ENGINE)
def test_an_engine_module_knows_no_framework_no_provider_and_no_vector_database(module: str) -> None:  # PE-10
    code = (
        f"import sys, agentlab.persona.{module}\n"
        f"print(sorted({{name.split('.')[0] for name in sys.modules}} & set({FOREIGN})))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_needs_no_django() -> None:  # PE-4 PE-10
    code = "import sys, agentlab.persona.work; print('django' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", ["time", "random", "datetime", "uuid", "os", "secrets"])
def test_no_engine_module_asks_a_clock_or_a_random_source(name: str) -> None:  # PE-1
    for module in ENGINE:
        tree = ast.parse((ROOM / f"{module}.py").read_text())
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert name not in imported, module


def trace_writes(source: str) -> list[int]:
    """Lines that write the trace: through the model, through a run's `trace`, or by its table's name."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if _writes(node)]


def _writes(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        words = node.value.split()
        return TABLE in words and bool({"INSERT", "UPDATE", "DELETE", "REPLACE"} & {word.upper() for word in words})
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        return "TraceEvent" in names or _reaches_trace(node.func.value)
    return False


def _reaches_trace(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "trace" for one in ast.walk(node))


def test_the_runner_alone_writes_the_trace() -> None:  # PE-3
    writers = set()
    for path in [*ROOT.glob("agentlab/**/*.py"), *ROOT.glob("capture/**/*.py"), *ROOT.glob("factory/**/*.py")]:
        if "migrations" not in path.parts and trace_writes(path.read_text()):
            writers.add(path.relative_to(ROOT).as_posix())
    assert writers == {"agentlab/persona/runner.py"}


@pytest.mark.parametrize(
    "broken",
    [
        "TraceEvent.objects.create(run=run)",
        "TraceEvent.objects.filter(run=run).order_by('turn').delete()",
        "run.trace.filter(turn=3).update(label='')",
        "TraceEvent(run=run).save()",
        "TraceEvent.objects.bulk_create([x])",
        "cursor.execute('INSERT INTO study_trace (run_id) VALUES (1)')",
        "cursor.execute('delete from study_trace')",
    ],
)
def test_the_check_finds_code_that_breaks_the_rule(broken: str) -> None:  # PE-3
    assert trace_writes(broken)


@pytest.mark.parametrize(
    "fine", ["TraceEvent.objects.filter(run=run).count()", "run.save()", "'SELECT * FROM study_trace'"]
)
def test_the_check_leaves_reading_alone(fine: str) -> None:  # PE-3
    assert not trace_writes(fine)
