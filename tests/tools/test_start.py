"""The client of MCP is imported by the first call, not by the start."""

import subprocess
import sys

from tests.tools.site import ROOT

START = """
import django, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()
import conch.asgi, conch.lifespan, conch.tools, settings_ui.urls
print(sorted({name.partition(".")[0] for name in sys.modules} & {"mcp", "mcp_types", "jsonschema", "starlette"}))
"""


def test_a_start_imports_nothing_of_it():
    started = subprocess.run([sys.executable, "-c", START], cwd=ROOT, capture_output=True, text=True, check=True)

    assert started.stdout.strip().splitlines()[-1] == "[]"
