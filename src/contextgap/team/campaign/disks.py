"""Tells network disks, on which SQLite's locks and shared memory do not work."""

from __future__ import annotations

from pathlib import Path

_NETWORK = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "gpfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.gcsfuse",
    ]
)
_MOUNTS = Path("/proc/self/mountinfo")


def check_local(path: Path) -> None:
    """Raise if a file would be on a network disk, as far as that can be told."""
    kind = "a Windows share" if str(path).startswith("\\\\") else filesystem(path)
    if kind == "a Windows share" or kind in _NETWORK:
        raise ValueError(
            f"database must be on a local disk, and {path} is on a network disk ({kind}), where "
            "SQLite loses data when several processes write; use a local file, or PostgreSQL for "
            "several machines"
        )


def filesystem(path: Path) -> str | None:
    """Return the kind of file system that a file is or would be on; None if it cannot be told."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    target = path.resolve()
    best, kind = -1, None
    for line in mounts:
        left, _, right = line.partition(" - ")
        mounted = Path(left.split()[4].replace("\\040", " "))
        # Of mounts at the same place the last one covers the others.
        if (target == mounted or mounted in target.parents) and len(mounted.parts) >= best:
            best, kind = len(mounted.parts), right.split()[0]
    return kind
