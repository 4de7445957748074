"""Where a state is: a folder, or the address of a bucket.

Small commits are written by the driver, without a job of Spark, so the driver must reach the
storage: a folder of this machine or one that is mounted, or a bucket for which delta-rs finds
credentials. What is large is written and read by Spark, which must reach the same place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyarrow.fs import FileSystem, LocalFileSystem


@dataclass(frozen=True)
class Location:
    """The root of a state, an absolute folder or an address; `name` is what a person wrote."""

    name: str
    root: str

    @classmethod
    def of(cls, state: str) -> Location:
        # Spark has a working directory of its own, which stays where it was started.
        root = (state if "://" in state else str(Path(state).absolute())).rstrip("/")
        return cls(state, root)

    @property
    def folder(self) -> Path | None:
        """The folder of the state if it is on this machine."""
        return None if "://" in self.root else Path(self.root)

    def path(self, *names: str) -> str:
        return "/".join((self.root, *names))

    def files(self, *names: str) -> tuple[FileSystem, str]:
        """A file system of Arrow, and the path there."""
        path = self.path(*names)
        if self.folder is not None:
            return LocalFileSystem(), path
        found: tuple[FileSystem, str] = FileSystem.from_uri(path)
        return found
