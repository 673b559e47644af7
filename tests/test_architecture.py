"""The house rules: which way imports point, how long things get, and what no tracked file may hold."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from conch.engines.registry import ENGINES

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("conch/", "routing/", "settings_ui/", "manage.py")
CORE = ("facts", "choices", "room", "ranking", "survey", "waiting", "routed", "decision", "outcome", "plan")
SHELL = ("known", "rows", "prepared", "api", "apps", "__init__")  # what of routing has effects

# Who may import whom: a part may use what stands above it in this list, never what stands below.
LAYERS = (
    ("conch.configuration", "conch.money", "conch.db", "conch.sql", "conch.reread"),
    ("conch.models", "conch.engines"),
    tuple(f"routing.{name}" for name in CORE),
    (
        "conch.copy",
        "conch.ledger",
        "conch.tools",
        "conch.accounts.seal",
        "conch.accounts.addresses",
        "conch.accounts.access",
        "conch.accounts.room",
        "conch.accounts.room_rows",
        "conch.accounts.samples",
        "conch.accounts.abilities",
        "conch.accounts.meters",
        "conch.accounts.lists",
    ),
    ("routing.known", "routing.rows", "routing.prepared"),
    ("conch.turns",),
    ("conch.accounts", "conch.chat", "conch.tasks", "conch.api", "routing.api", "settings_ui", "conch.admin"),
    ("conch.urls", "conch.asgi", "conch.lifespan", "conch.management", "conch.demo"),
)


@cache
def tracked(*patterns):
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    return tuple(ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file())


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def python_files(*starts):
    chosen = (path for path in tracked("*.py") if "/migrations/" not in path.as_posix())
    return [path for path in chosen if not starts or name_of(path).startswith(starts)]


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path):
    return name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def imports(path):
    """Every module that a file imports, inside functions too; `from package import module` counts as that module."""
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} imports relatively"
            found += [imported(node.module, alias.name) for alias in node.names]
    return tuple(found)


@cache
def imported(package, name):
    whole = f"{package}.{name}"
    path = ROOT / whole.replace(".", "/")
    return whole if path.with_suffix(".py").exists() or path.is_dir() else package


def layer_of(module):
    """The layer of the longest name that the module is or is within; None for what stands outside them all."""
    fits = [
        (len(part), level)
        for level, parts in enumerate(LAYERS)
        for part in parts
        if module == part or module.startswith(f"{part}.")
    ]
    return max(fits)[1] if fits else None


@cache
def functions(path):
    """Every function with its length in lines."""
    return tuple(
        (node, node.end_lineno - node.lineno + 1)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


@cache
def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def check_none(found):
    """Nothing was found; else each finding on a line of its own."""
    assert not found, "\n".join(["", *found])


def test_the_core_of_routing_imports_the_standard_library_and_itself_only():
    allowed = set(sys.stdlib_module_names)
    foreign = [
        f"{name_of(path)}: {module}"
        for path in python_files(*(f"routing/{name}.py" for name in CORE))
        for module in imports(path)
        if module.partition(".")[0] not in allowed and module not in {f"routing.{name}" for name in CORE}
    ]

    check_none(foreign)


def test_every_module_of_routing_is_of_its_core_or_of_its_shell():
    assert sorted(path.stem for path in python_files("routing/")) == sorted(CORE + SHELL)


def test_the_core_of_routing_never_reads_the_clock():
    clock = re.compile(r"\b(datetime|date|time|timezone)\.(now|utcnow|today|time|monotonic)\(")
    reads = [
        f"{name_of(path)}:{number}"
        for path in python_files(*(f"routing/{name}.py" for name in CORE))
        for number, line in enumerate(lines(path), 1)
        if clock.search(line)
    ]

    check_none(reads)


@pytest.mark.parametrize(("part", "other"), [("models", "engines"), ("engines", "models")])
def test_models_and_engines_know_nothing_of_each_other(part, other):
    wrong = [
        f"{name_of(path)}: {module}"
        for path in python_files(f"conch/{part}/")
        for module in imports(path)
        if module.startswith((f"conch.{other}", "routing", "settings_ui"))
    ]

    check_none(wrong)


def test_imports_point_one_way():
    wrong = []
    for path in python_files(*PRODUCT):
        importer = layer_of(module_of(path))
        if importer is None:
            continue
        for module in imports(path):
            imported = layer_of(module)
            if imported is not None and imported > importer:
                wrong.append(f"{name_of(path)} imports {module}")

    check_none(wrong)


def test_the_product_never_imports_its_tests_outside_the_demo():
    wrong = [
        f"{name_of(path)}: {module}"
        for path in python_files(*PRODUCT)
        for module in imports(path)
        if module.partition(".")[0] == "tests" and module_of(path) != "conch.demo"
    ]

    check_none(wrong)


def test_modules_stay_under_four_hundred_lines():
    check_none([f"{name_of(path)} {n}" for path in python_files() if (n := len(lines(path))) > 400])


def test_functions_stay_short():
    """None over 60 lines; of the product's, nine in ten within 30."""
    long = [
        f"{name_of(path)}:{node.lineno} {node.name} {size}"
        for path in python_files()
        for node, size in functions(path)
        if size > 60
    ]
    sizes = sorted(size for path in python_files(*PRODUCT) for _, size in functions(path))

    check_none(long)
    assert sizes[int(len(sizes) * 0.9)] <= 30


def test_templates_stay_under_a_hundred_and_twenty_lines():
    check_none([f"{name_of(path)} {n}" for path in tracked("templates/*.html") if (n := len(lines(path))) > 120])


def test_our_own_script_is_three_hundred_lines_in_all():
    assert sum(len(lines(path)) for path in tracked("*.js")) <= 300


def test_lines_stay_within_a_hundred_and_twenty_characters():
    """As the linter counts: without what is said to it at the end, and one long word can't be broken."""
    long = [
        f"{name_of(path)}:{number}"
        for path in tracked("*.py", "*.js")
        if "/migrations/" not in path.as_posix()
        for number, line in enumerate(lines(path), 1)
        if len(re.sub(r"\s+# (noqa|type: ignore).*", "", line)) > 120 and " " in line.strip()
    ]

    check_none(long)


def test_engines_are_named_in_the_registry_only():
    """A new engine is a module, a registry line and a test module: nothing else compares or lists ids."""
    ids = set(ENGINES) - {"local"}
    named = [
        f"{name_of(path)}:{node.lineno} {node.value!r}"
        for path in python_files(*PRODUCT)
        if not name_of(path).startswith(("conch/engines/", "conch/demo"))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in ids
    ]
    quoted = re.compile("|".join(f"[\"']{re.escape(engine)}[\"']" for engine in ids))
    in_templates = [
        f"{name_of(path)}:{number}"
        for path in tracked("templates/*.html")
        for number, line in enumerate(lines(path), 1)
        if quoted.search(line)
    ]

    check_none(named)
    check_none(in_templates)


def test_no_tracked_file_names_a_registry_or_a_path_of_somebodys_machine():
    telling = re.compile(
        r"https?://[a-z0-9.-]*(pypi|pythonhosted|npmjs|debian)|(^|[^a-zA-Z0-9_.])/(work|root|farm|home/[a-z]+)/"
    )
    found = []
    for path in tracked():
        if path.suffix in {".svg", ".png", ".ico", ".woff2"}:
            continue
        found += [f"{name_of(path)}:{n}" for n, line in enumerate(lines(path), 1) if telling.search(line)]

    check_none(found)


def test_every_dependency_has_a_reason():
    text = (ROOT / "pyproject.toml").read_text()
    listed = tomllib.loads(text)["project"]["dependencies"]
    reasons = dict(re.findall(r'^  "([^"]+)",\s+# (\S.*)$', text, re.MULTILINE))

    check_none([dependency for dependency in listed if dependency not in reasons])


@pytest.mark.parametrize("lock", ["run", "test", "model"])
def test_locks_name_versions_and_hashes_and_no_address(lock):
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    pinned = re.findall(r"^[a-z0-9][^=\s]*==\S+.*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    named = re.findall(r"^[a-z0-9]", text, re.MULTILINE)

    assert len(pinned) == len(named) > 0
    assert "://" not in text


def test_the_tests_lock_holds_the_products_at_the_same_versions():
    def versions(name):
        return set(re.findall(r"^(\S+==\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE))

    assert versions("run.txt") <= versions("test.txt")


def test_every_test_can_fail():
    """A test asserts, or calls something of the tests that does."""
    asserting = "assert|raises|expect|check"
    helpers = {
        node.name
        for path in python_files("tests/")
        for node, _ in functions(path)
        if not node.name.startswith("test_") and re.search(asserting, body(path, node))
    }
    toothless = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in python_files("tests/")
        for node, _ in functions(path)
        if node.name.startswith("test_")
        and not re.search(asserting, body(path, node))
        and not helpers & set(re.findall(r"\b(\w+)\(", body(path, node)))
    ]

    check_none(toothless)


def body(path, node):
    return "\n".join(lines(path)[node.lineno : node.end_lineno])


def test_no_test_skips_or_is_expected_to_fail():
    """A missing tool fails: a test that hides is no test."""
    hiding = re.compile(r"\bpytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b")
    hidden = [
        f"{name_of(path)}:{number}"
        for path in python_files("tests/")
        for number, line in enumerate(lines(path), 1)
        if hiding.search(line)
    ]

    check_none(hidden)


def test_whoever_catches_everything_says_why():
    """The reason stands on the line itself, after the rule that it silences if there is one."""
    everything = re.compile(r"^\s*except(\s*|.*\b(Base)?Exception\b.*):\s*(# (noqa: \S+\s*)?(?P<why>\S+ .*))?$")
    unsaid = [
        f"{name_of(path)}:{number}"
        for path in python_files(*PRODUCT)
        for number, line in enumerate(lines(path), 1)
        if (caught := everything.match(line)) and not caught["why"]
    ]

    check_none(unsaid)


def test_no_note_is_left_for_later():
    words = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    left = [
        f"{name_of(path)}:{number}"
        for path in tracked("*.py", "*.html", "*.js", "*.css", "Makefile")
        for number, line in enumerate(lines(path), 1)
        if words.search(line)
    ]

    check_none(left)


def test_decisions_are_numbered_in_order():
    numbers = [int(path.name[:4]) for path in sorted(tracked("docs/decisions/*.md")) if path.name[:4].isdigit()]

    assert all(later == earlier + 1 for earlier, later in pairwise(numbers))
