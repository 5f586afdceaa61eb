"""The WSGI application that gunicorn serves."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentlab.settings")
try:
    application = get_wsgi_application()
except ImproperlyConfigured as error:
    print(f"agentlab: {error}", file=sys.stderr)  # noqa: T201 - nothing is set up yet that could log
    sys.exit(3)  # gunicorn takes this for a worker that will never boot, and ends instead of starting it again
