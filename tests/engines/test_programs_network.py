"""Nothing leaves the machine: the programs in a network namespace with no way out, look-ups of names written down."""

from tests.engines.network_trial import CONTROL
from tests.engines.profile_trial import HOST
from tests.programs import told_by


def test_no_name_is_looked_up_and_no_other_host_is_asked(tmp_path):
    """clis.md 4: an answer, a limit and a refused sign-in, without the dead proxy that the other tests have."""
    said = told_by("tests.engines.network_trial", tmp_path)
    assert said["came"] == ["Done", "LimitReached", "SignedOut"] * 2
    assert set(said["names"]) == {CONTROL}  # its own, at the end
    assert said["hosts"] == [f"127.0.0.1:{said['port']}"]


def test_claude_code_reads_its_windows_ahead_of_a_turn_where_its_sign_in_may(tmp_path):
    """R29: from Anthropic's own host, as it is; what it only says again is no evidence, and a failure no figure."""
    said = told_by("tests.engines.profile_trial", tmp_path)
    assert said["identity"] == "org-bob-at-home-example:bob@home.example"
    assert [window[:2] for window in said["first"]] == [["5-hour", 42], ["weekly", 7]]
    assert said["at once"] is None
    assert [window[:2] for window in said["later"]] == [["5-hour", 60], ["weekly", 7]]
    assert said["answer"] == "Done"
    # In mid-stream the program tells a limit from a throttle by nothing: the windows do, and until when.
    assert said["limit"] == [True, 3600]
    assert said["refused"] == "EngineFault"
    assert said["replies"] == 2
    assert said["hosts"] == [HOST]
