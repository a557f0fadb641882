"""Files and folders that hold rows, or what opens them, are for the user who runs the process.

What is made here is closed to others from its first moment, whatever the umask. What was there
before and is open (an older release made it so) is closed at the start, with a line in the log;
where it belongs to somebody else that can't be done, and the process does not start.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

from leasehold.model.errors import ConfigurationError

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
OTHERS: Final = 0o077
SIDE_FILES: Final = ("-wal", "-shm")
"""What SQLite keeps beside a store."""
LOG: Final = logging.getLogger("leasehold.files")


def make_private_folder(folder: Path) -> None:
    """Make the folder where it is missing, and keep others out of it. Raises ConfigurationError."""
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    keep_private(folder)


def make_node_folder(folder: Path) -> None:
    """Make a node's folder where it is missing, and keep others out of it and all that is in it.
    Raises ConfigurationError."""
    make_private_folder(folder)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            keep_private(path)


def keep_store_private(path: Path) -> None:
    """The file of a store, made where there is none, and those that SQLite keeps beside it, which
    get its mode when they are made. Raises ConfigurationError."""
    make_private_file(path)
    for side in SIDE_FILES:
        keep_private(path.with_name(path.name + side))


def make_private_file(path: Path) -> None:
    """Make an empty file where there is none, and keep others out of it. Raises
    ConfigurationError."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
    except OSError as error:
        raise ConfigurationError(f"the file {path} can't be opened: {error.strerror}") from error
    keep_private(path)


def keep_private(path: Path) -> None:
    """Close a file or folder to everybody but its owner. Raises ConfigurationError where that is
    another user."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return  # a side file that went with its last reader
    mode = stat.S_IMODE(found.st_mode)
    if not mode & OTHERS:
        return
    if found.st_uid != os.geteuid():
        raise ConfigurationError(
            f"{path} (mode {mode:o}) is open to other users of this machine and belongs to user"
            f" {found.st_uid}: it holds rows, or what opens them. Give it to the user of this"
            f" process (chown {os.geteuid()}), or chmod go= it"
        )
    try:
        path.chmod(mode & ~OTHERS)
    except OSError as error:
        raise ConfigurationError(
            f"{path} (mode {mode:o}) is open to other users of this machine, and chmod go= fails:"
            f" {error.strerror}"
        ) from error
    LOG.warning(
        "%s was open to other users of this machine (mode %o); it is closed to them now (%o)",
        path,
        mode,
        mode & ~OTHERS,
    )
