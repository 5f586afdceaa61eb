"""The one authorisation answer: who may see what. Every list, detail, part, raw, pin and preview asks here.

Three kinds of people: an operator (`is_staff`) sees everything; a signed-in owner sees what is theirs; anybody else
sees nothing. What one may not see answers 404, as if it were not there. Signing in is demanded by Django's
LoginRequiredMiddleware for every view that does not opt out, so a forgotten check is closed, not open.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase

M = TypeVar("M", bound=Model)
User = AbstractBaseUser | AnonymousUser


def is_operator(user: User) -> bool:
    return bool(user.is_authenticated and user.is_active and getattr(user, "is_staff", False))


def operators_only(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """The view exists for operators alone; to any other signed-in user it is not there."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not is_operator(request.user):
            raise Http404
        return view(request, *args, **kwargs)

    return checked


def visible(queryset: QuerySet[M], user: User, *, owner: str = "owner") -> QuerySet[M]:
    """The rows this user may read: all for an operator, their own for an owner, none for anybody else.

    `owner` is the lookup from the row to its owner, such as `run__owner`.
    """
    if is_operator(user):
        return queryset
    return owned(queryset, user, owner=owner)


def owned(queryset: QuerySet[M], user: User, *, owner: str = "owner") -> QuerySet[M]:
    """The rows that are this user's own, whoever they are: what they may change."""
    if not user.is_authenticated or not user.is_active:
        return queryset.none()
    return queryset.filter(**{owner: user.pk})
