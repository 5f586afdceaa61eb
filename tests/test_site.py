"""The pages that belong to no room."""

import pytest
from django.test import Client


@pytest.mark.django_db
def test_anybody_may_open_the_home_page_and_sees_a_strict_policy(client: Client) -> None:  # SF-2
    response = client.get("/")
    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert response.headers["Cache-Control"] == "private, no-store"
