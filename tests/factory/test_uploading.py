"""A session file that is brought by a browser."""

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.messages.storage.fallback import FallbackStorage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, RequestFactory

import factory
from factory import uploading
from factory.importing import UPLOAD_LIMIT, import_path
from factory.models import FactoryRun

pytestmark = pytest.mark.django_db


def uploaded(client: Client, name: str, data: bytes) -> Any:
    return client.post("/factory/import", {"file": SimpleUploadedFile(name, data)}, follow=True)


def test_a_session_file_becomes_a_run_of_whoever_brought_it(owner: Client, ada: User) -> None:  # IM-1
    data = (Path(factory.__file__).parent / "examples/session.jsonl").read_bytes()
    response = uploaded(owner, "session.jsonl", data)
    row = FactoryRun.objects.get()
    assert (row.owner, response.redirect_chain[-1][0]) == (ada, f"/factory/runs/{row.pk}")
    assert "records" in response.content.decode()
    again = uploaded(owner, "session.jsonl", data).content.decode()
    assert FactoryRun.objects.count() == 1
    assert "nothing new: pi session, whose 2 attempts were all here already." in again
    only_header = data.splitlines(keepends=True)[0].replace(b'"id": "', b'"id": "other-')
    assert "here already" not in uploaded(owner, "empty.jsonl", only_header).content.decode()


def test_bringing_a_file_says_what_its_hidden_records_are(owner: Client) -> None:  # IM-1
    data = (Path(factory.__file__).parent / "examples/session.jsonl").read_bytes()
    label = b'{"type": "label", "id": "new", "parentId": null, "timestamp": "2026-11-29T12:00:00Z"}\n'
    said = uploaded(owner, "session.jsonl", data + label).content.decode()
    assert "hidden (not part of the conversation, such as file snapshots or progress), 0 damaged" in said


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("<b>x</b>.jsonl", b"not a session"),
        ("trace.sqlite3", b"SQLite format 3\x00" + bytes(100)),
        ("empty", b""),
    ],
)
def test_a_file_that_is_none_of_ours_is_a_sentence(owner: Client, name: str, data: bytes) -> None:  # IM-1 SF-4
    response = uploaded(owner, name, data)
    assert response.status_code == 200
    assert 'class="flash error"' in response.content.decode()
    assert "<b>x</b>" not in response.content.decode()
    assert not FactoryRun.objects.exists()


def test_an_upload_that_is_too_large_is_refused_before_it_is_read(owner: Client) -> None:  # SF-6
    response = owner.post(
        "/factory/import", b"", content_type="multipart/form-data; boundary=x", CONTENT_LENGTH=str(10**9), follow=True
    )
    assert "20 MiB" in response.content.decode()


def test_an_upload_needs_the_forms_token(ada: User) -> None:  # SF-1
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    assert client.post("/factory/import", {"file": SimpleUploadedFile("x", b"x")}).status_code == 403


def test_nobody_brings_nothing(client_of: Callable[[User | None], Client]) -> None:  # SF-1
    response = client_of(None).post("/factory/import", {"file": SimpleUploadedFile("x", b"x")})
    assert response.status_code == 302 and response.headers["Location"].startswith("/login")


@pytest.mark.parametrize(("members", "said"), [(1, "unpacks to more than 20 MiB"), (11, "to more than 200 MiB")])
def test_an_archive_that_unpacks_to_more_than_a_file_may_have_is_refused_here_alone(
    owner: Client, tmp_path: Path, members: int, said: str
) -> None:  # SF-6
    words = os.urandom(512).hex() * (21_000 if members == 1 else 19_000)  # 21 MiB, or eleven times 19
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {"run_id": "r"}}))
        for number in range(members):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps({"id": number, "input": words}))
    said_to = uploaded(owner, "log.eval", (tmp_path / "log.eval").read_bytes()).content.decode()
    assert said in said_to and "manage.py factory import takes larger ones" in said_to
    assert not FactoryRun.objects.exists()
    if members == 1:
        assert [report.new for report in import_path(tmp_path / "log.eval", owner_id=None)] == [1]


@pytest.mark.parametrize(("limit", "left"), [(uploading.HEARD_OUT, b""), (UPLOAD_LIMIT, b"x")])
def test_a_file_that_is_too_large_is_heard_out_so_that_its_sender_reads_why(
    rf: RequestFactory, ada: User, monkeypatch: pytest.MonkeyPatch, limit: int, left: bytes
) -> None:  # SF-4, SF-6
    monkeypatch.setattr(uploading, "HEARD_OUT", limit)
    form = {"content_type": "multipart/form-data; boundary=x"}
    request = rf.post("/factory/import", b"x" * (UPLOAD_LIMIT + 100_000), **form)
    request.user, request.session = ada, {}  # type: ignore[assignment]
    request._messages = FallbackStorage(request)  # type: ignore[attr-defined]
    assert uploading.upload(request).status_code == 302
    assert request.read(1) == left
