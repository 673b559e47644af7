"""What a start looks at, over the real settings and a real folder."""

from pathlib import Path

from conch import checks, collected


def test_a_private_folder_is_fine(settings, tmp_path):
    tmp_path.chmod(0o700)
    settings.CONCH_DATA = tmp_path

    assert checks.data_folder_is_private() == []


def test_a_folder_that_others_can_read_is_said_with_what_to_do(settings, tmp_path):
    tmp_path.chmod(0o755)
    settings.CONCH_DATA = tmp_path

    (found,) = checks.data_folder_is_private()

    assert found.id == "conch.W001"
    assert found.hint == f"chmod 700 {tmp_path}"


def test_a_folder_that_is_gone_stops_the_start(settings, tmp_path):
    settings.CONCH_DATA = tmp_path / "gone"

    (found,) = checks.data_folder_is_private()

    assert found.id == "conch.E001"


def test_listening_elsewhere_without_https_is_warned_of(settings):
    settings.CONCH_HOST, settings.CONCH_HTTPS = "0.0.0.0", False
    (found,) = checks.listening_elsewhere_goes_over_https()
    settings.CONCH_HTTPS = True

    assert found.id == "conch.W002"
    assert checks.listening_elsewhere_goes_over_https() == []


def test_a_missing_model_is_said_with_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("CONCH_DATA", str(tmp_path))

    (found,) = checks.there_is_a_model_on_this_computer()

    assert found.id == "conch.I001"
    assert "CONCH_LOCAL_URL" in found.msg


def test_static_files_are_collected_once_and_again_when_one_changes(settings, tmp_path):
    """A second start collects nothing, so that it is up within seconds."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "sheet.css").write_text("a{}")
    settings.STATICFILES_DIRS = [str(source)]
    settings.STATIC_ROOT = tmp_path / "data" / "static"
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]

    first, second = collected.collect_static(), collected.collect_static()
    (source / "sheet.css").write_text("a{color:red}")

    assert (first, second) == (True, False)
    assert collected.collect_static() is True
    assert Path(settings.STATIC_ROOT, "sheet.css").read_text() == "a{color:red}"
