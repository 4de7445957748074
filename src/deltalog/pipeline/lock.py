"""One writer at a time: a lock on a file of the state's folder.

The operating system gives it back when the process ends, however it ends. Where there is no folder
(a bucket), the conditional commit of the log keeps writers apart (`log.py`).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import DataError
from deltalog.pipeline.log import in_use


def lock_folder(folder: Path, name: str) -> IO[str]:
    """Take the lock; the file that is returned holds it until it is closed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a+", encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError([catalogue.CANNOT_WRITE.at(None, name=folder, reason=reason)]) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        owner = file.read().strip()
        file.close()
        raise in_use(name, f"process {owner}" if owner else "another run") from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
