"""SQLite files on network disks are refused, where that can be told."""

from pathlib import Path

import pytest

from contextgap.team.campaign import database as disks
from contextgap.team.campaign.database import check_local, filesystem

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:45 / /mnt/share rw - nfs4 server:/export rw
41 40 0:46 / /mnt/share/scratch rw - tmpfs tmpfs rw
42 22 0:47 / /mnt/my\\040lab rw - cifs //server/lab rw
"""


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    listed = tmp_path / "mountinfo"
    listed.write_text(MOUNTS)
    monkeypatch.setattr(disks, "_MOUNTS", listed)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x.db", "ext4"),
        ("/mnt/share/x.db", "nfs4"),
        ("/mnt/shared/x.db", "ext4"),
        ("/mnt/share/scratch/x.db", "tmpfs"),
        ("/mnt/my lab/x.db", "cifs"),
    ],
)
def test_the_kind_of_disk(mounts, path, kind):
    assert filesystem(Path(path)) == kind


def test_network_disks_are_refused_with_a_reason(mounts):
    check_local(Path("/home/x.db"))
    with pytest.raises(ValueError, match="on a network disk \\(nfs4\\), where SQLite loses data"):
        check_local(Path("/mnt/share/x.db"))
    with pytest.raises(ValueError, match="Windows share"):
        check_local(Path("\\\\server\\x.db"))


def test_what_cannot_be_told_is_not_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(disks, "_MOUNTS", tmp_path / "none")
    check_local(Path("/mnt/share/x.db"))
