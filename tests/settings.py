"""The product's settings over a data folder of the tests' own; DATABASE_URL chooses the database, SQLite by default."""

import atexit
import os
import shutil
import tempfile

if "CONCH_TEST_DATA" not in os.environ:
    os.environ["CONCH_TEST_DATA"] = tempfile.mkdtemp(prefix="conch-tests-")
    atexit.register(shutil.rmtree, os.environ["CONCH_TEST_DATA"], ignore_errors=True)
os.environ["CONCH_DATA"] = os.environ["CONCH_TEST_DATA"]

from conch.settings import *  # noqa: F403  the product's own, whole
from conch.settings import CONCH_DATA, DATABASES

DATABASES["default"]["TEST"] = {"NAME": str(CONCH_DATA / "tests.sqlite3")}
if str(DATABASES["default"]["ENGINE"]).endswith("postgresql"):
    DATABASES["default"]["TEST"] = {"NAME": f"conch_tests_{os.getpid()}"}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
