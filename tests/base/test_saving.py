"""Files are written wholly or not at all, where the user said, as the user had them."""

import os
import stat
import subprocess
import sys

import pytest

import contextgap as cg
from contextgap.base.files import whole_file

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes, links and devices are POSIX's")


@pytest.fixture
def policy():
    return cg.Learner(2, kernel=cg.Gaussian(1.0)).fit([[0.0], [1.0]], [0, 1], [1.0, 2.0]).freeze()


@POSIX
def test_links_are_followed(policy, tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.cgap"
    link.symlink_to(tmp_path / "real" / "p.cgap")
    for _ in range(2):  # first dangling, then not
        policy.save(link)
        assert link.is_symlink()
        assert cg.Policy.load(tmp_path / "real" / "p.cgap").arms == (0, 1)
    assert os.listdir(tmp_path / "real") == ["p.cgap"]


@POSIX
def test_modes_are_kept(policy, tmp_path):
    path = tmp_path / "p.cgap"
    path.touch(mode=0o600)
    policy.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    fresh = tmp_path / "fresh.cgap"
    policy.save(fresh)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o666 & ~mask


@POSIX
def test_what_is_no_regular_file_is_refused(policy, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="pipe is not a regular file"):
        policy.save(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(OSError, match="/dev/null is not a regular file"):
        policy.save("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        policy.save(tmp_path)


@POSIX
def test_what_killed_saves_leave_is_removed_by_the_next(policy, tmp_path):
    path = tmp_path / "p.cgap"
    policy.save(path)
    code = (
        "import os, signal\n"
        "from contextgap.base.files import whole_file\n"
        f"with whole_file({str(path)!r}) as file:\n"
        "    file.write(b'half'); file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(os.listdir(tmp_path)) == 2
    assert cg.Policy.load(path).arms == (0, 1)
    with whole_file(path) as busy:  # one that is still being written stays
        policy.save(path)
        busy.write(path.read_bytes())
        assert len(os.listdir(tmp_path)) == 2
    assert os.listdir(tmp_path) == ["p.cgap"]
    assert cg.Policy.load(path).arms == (0, 1)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OSError, match=r"No space left.*a\.txt"), whole_file(path, text=True):
        raise OSError(28, "No space left on device")
    with pytest.raises(KeyboardInterrupt), whole_file(path):
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
