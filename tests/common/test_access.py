"""The one authorisation answer, where it is more than a comparison."""

import pytest
from django.contrib.auth.models import AnonymousUser, User

from agentlab.common.access import is_operator, owned, visible


@pytest.mark.django_db
@pytest.mark.parametrize("staff", [True, False])
def test_a_user_who_was_switched_off_sees_nothing(staff: bool) -> None:  # SF-1
    gone = User.objects.create_user("gone", is_staff=staff, is_superuser=staff, is_active=False)
    assert not is_operator(gone)
    for user in (gone, AnonymousUser()):
        assert not visible(User.objects.all(), user, owner="pk").exists()
        assert not owned(User.objects.all(), user, owner="pk").exists()
