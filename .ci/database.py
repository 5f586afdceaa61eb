"""A PostgreSQL role of a CI run's own: `answers SERVER`, `create SERVER` (prints the URL to use), `drop SERVER URL`.

`drop` takes the role's databases with it, those that an interrupted run left included.
"""

import secrets
import sys
from urllib.parse import urlsplit

import psycopg
from psycopg.sql import SQL, Identifier, Literal


def answers(server: str) -> None:
    try:
        psycopg.connect(server, connect_timeout=3).close()
    except psycopg.Error:
        sys.exit(1)


def create(server: str) -> None:
    name, password = f"agentlab_ci_{secrets.token_hex(4)}", secrets.token_hex(16)
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}").format(Identifier(name), Literal(password)))
        admin.execute(SQL("GRANT {} TO CURRENT_USER").format(Identifier(name)))
        admin.execute(SQL("CREATE DATABASE {} OWNER {}").format(Identifier(name), Identifier(name)))
    place = urlsplit(server)
    print(f"postgresql://{name}:{password}@{place.hostname or '127.0.0.1'}:{place.port or 5432}/{name}")  # noqa: T201


def drop(server: str, url: str) -> None:
    name = urlsplit(url).username or ""
    with psycopg.connect(server, autocommit=True) as admin:
        owned = "SELECT datname FROM pg_database JOIN pg_roles r ON r.oid = datdba WHERE r.rolname = %s"
        for (database,) in admin.execute(owned, [name]).fetchall():
            admin.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(database)))
        admin.execute(SQL("DROP ROLE {}").format(Identifier(name)))


if __name__ == "__main__":
    {"answers": answers, "create": create, "drop": drop}[sys.argv[1]](*sys.argv[2:])
