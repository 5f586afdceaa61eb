"""Settings of the project: every one has a working default, and the environment overrides it."""

from pathlib import Path

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from redis.backoff import NoBackoff
from redis.retry import Retry

from agentlab import env, local

BASE_DIR = Path(__file__).resolve().parent.parent
LOCAL = local.is_local()
STATE_DIR = local.make_private(local.state_dir()) if LOCAL else local.state_dir()

SECRET_KEY = env.text("SECRET_KEY") or (local.secret("secret-key") if LOCAL else "")
if not SECRET_KEY:
    raise ImproperlyConfigured(
        "SECRET_KEY is not set. `make run` makes a local site; production needs a key of its own."
    )
DEBUG = env.flag("DEBUG", False)
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"] if LOCAL else [])
CSRF_TRUSTED_ORIGINS = env.names("CSRF_TRUSTED_ORIGINS", [])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "agentlab",
    "agentlab.common",
    "agentlab.agents",
    "agentlab.hosted",
    "agentlab.persona",
    "capture",
    "factory",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "agentlab.common.middleware.PrivateByDefault",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "agentlab.common.middleware.SignedInByDefault",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "agentlab.urls"
WSGI_APPLICATION = "agentlab.wsgi.application"
APPEND_SLASH = True
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agentlab.common.context.site",
            ],
        },
    },
]

# Stores -----------------------------------------------------------------------------------------------------
DATABASE_URL = env.text("DATABASE_URL", f"sqlite:///{STATE_DIR / 'agentlab.sqlite3'}")
try:
    DATABASES = {"default": dj_database_url.parse(DATABASE_URL)}
    if DATABASES["default"]["ENGINE"] not in {f"django.db.backends.{kind}" for kind in ("sqlite3", "postgresql")}:
        raise ValueError("another kind of database")
except Exception:  # the parser's own message would print the URL, password and all
    raise ImproperlyConfigured("DATABASE_URL cannot be read: postgresql://user@host/name or sqlite:////path") from None
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    if DATABASES["default"]["NAME"] != ":memory:":  # one file, whatever folder a process works in
        DATABASES["default"]["NAME"] = str(BASE_DIR / DATABASES["default"]["NAME"])
    DATABASES["default"]["OPTIONS"] = {
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=20000;",
        "transaction_mode": "IMMEDIATE",  # a reader that turns writer would otherwise fail at once under load
        "timeout": 20,
    }
else:
    # A pool is per process; with one, CONN_MAX_AGE must stay 0.
    DATABASES["default"]["OPTIONS"] = {
        "pool": {"min_size": 0, "max_size": 8, "timeout": 5},
        "connect_timeout": 5,
        "tcp_user_timeout": 30_000,  # a server that is cut off is found out in half a minute, not in two hours
        "keepalives_idle": 30,
    }
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True  # a restarted server costs a new connection, not an error
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

PRIVATE_REDIS_SOCKET = local.socket_path(STATE_DIR)
AGENT_CAPTURE_REDIS_URL = env.redis_url("AGENT_CAPTURE_REDIS_URL", f"unix://{PRIVATE_REDIS_SOCKET}?db=0")
CACHE_URL = env.redis_url("CACHE_URL")
CAPTURE_TTL_SECONDS = env.whole("CAPTURE_TTL_SECONDS", 86_400, least=1, most=10 * 365 * 86_400)
# Failed sign-ins are counted in these. With Django's 300 entries whoever guesses could have a count forgotten by
# failing under some hundred other names; so many fit in no window.
IN_MEMORY = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 100_000}}
NO_RETRY = Retry(NoBackoff(), 0)
CACHES = {
    "default": (
        {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": CACHE_URL,
            "OPTIONS": {
                "SOCKET_CONNECT_TIMEOUT": 1,
                "SOCKET_TIMEOUT": 1,
                "CONNECTION_POOL_KWARGS": {"retry": NO_RETRY},
            },
        }
        if CACHE_URL
        else IN_MEMORY
    ),
    "here": IN_MEMORY | {"LOCATION": "here"},  # while the other does not answer
    # Never used as a cache: it is how Django reaches the capture buffer's own Redis, with raw bytes, short
    # timeouts and no retries (the client's defaults hold a call for most of a minute when Redis hangs).
    "capture": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": AGENT_CAPTURE_REDIS_URL,
        "OPTIONS": {
            "CLIENT_CLASS": "django_redis.client.DefaultClient",
            "SOCKET_CONNECT_TIMEOUT": 1,
            "SOCKET_TIMEOUT": 2,
            "CONNECTION_POOL_KWARGS": {"retry": NO_RETRY, "max_connections": 32},
        },
    },
}

# What the rooms read ----------------------------------------------------------------------------------------
AGENT_CAPTURE_SERVICE_KEY = env.text("AGENT_CAPTURE_SERVICE_KEY") or (local.secret("service-key") if LOCAL else "")
HOSTED_AGENT_URL = env.text("HOSTED_AGENT_URL")
OPENAI_BASE_URL = env.text("OPENAI_BASE_URL")
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
AGENTLAB_MODEL = env.text("AGENTLAB_MODEL", "house")
MIN_TURN_MS = env.whole("MIN_TURN_MS", 900)
AGENT_LEDGER_SPOOL = BASE_DIR / Path(env.text("AGENT_LEDGER_SPOOL", str(STATE_DIR / "ledger.spool")))
FACTORY_SNAPSHOT_ROOT = BASE_DIR / Path(env.text("FACTORY_SNAPSHOT_ROOT", str(STATE_DIR / "snapshots")))
FACTORY_SNAPSHOT_BUDGET_BYTES = env.whole("FACTORY_SNAPSHOT_BUDGET_BYTES", 2 * 1024**3)
FACTORY_MIN_FREE_BYTES = env.whole("FACTORY_MIN_FREE_BYTES", 1024**3)
FACTORY_RUN_CAP_BYTES = env.whole("FACTORY_RUN_CAP_BYTES", 512 * 1024**2)

# Safety -----------------------------------------------------------------------------------------------------
CSRF_FAILURE_VIEW = "agentlab.common.views.csrf_failure"
LOGIN_URL = "/login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
SECURE_COOKIES = not LOCAL and not DEBUG
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", SECURE_COOKIES)
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
SECURE_HSTS_SECONDS = env.whole("SECURE_HSTS_SECONDS", 31_536_000 if SECURE_COOKIES else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE_COOKIES
if env.flag("BEHIND_TLS_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024**2

# Files, time, words -----------------------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = Path(env.text("STATIC_ROOT", str(STATE_DIR / "static" if LOCAL else BASE_DIR / "staticfiles")))
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "agentlab.formats"
USE_TZ = True

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAdminUser"],  # deny, then allow
    "UNICODE_JSON": False,  # a lone surrogate cannot be sent as UTF-8, escaped it can
}
SPECTACULAR_SETTINGS = {
    "TITLE": "agentlab",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": ["capture.api_schema.add_answers"],
}

LOG_LEVEL = env.one_of("LOG_LEVEL", "WARNING", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {"refused": {"()": "agentlab.common.faults.RefusedRequests"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["refused"]}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    # A line for each request, which quotes its whole address: a password may be in that.
    "loggers": {"httpx2": {"level": "WARNING" if LOG_LEVEL in ("DEBUG", "INFO") else LOG_LEVEL}},
}
