"""A folder on whatever file system Hadoop's API reaches: `file:`, `hdfs:`, `s3a:`, `viewfs:` …

All of it goes through Spark's own manager of checkpoint files, so that what holds for a checkpoint
holds for what stands beside it, with the credentials that Spark has:

- a file is there whole or not at all, and takes the place of an earlier one. `file:` and `hdfs:`
  rename it into its place, which is one step. `s3a:` has no rename in one step: there a copy
  appears whole in its place before what it was copied from goes, or, with the manager of
  spark-hadoop-cloud, the upload itself is completed (docs/how-to/deploy.md).
- Nothing is told of two writers of one file: one of them stays. There is one driver.
- A folder is removed file by file on an object store: what is killed meanwhile leaves a rest, which
  whoever writes there removes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from py4j.protocol import Py4JError, Py4JJavaError

from leasehold.model.errors import SparkUnavailable
from spark_streaming.failure_words import words_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOT_FOUND: Final = "java.io.FileNotFoundException"


class Folder(Protocol):
    """Files and folders below one folder, by paths that are relative to it. Every method raises
    SparkUnavailable."""

    def uri(self, path: str) -> str:
        """Return the whole name, for Spark."""

    def read(self, path: str) -> bytes | None:
        """Return what the file holds; None where there is none."""

    def write(self, path: str, content: bytes) -> None:
        """Write the file, whole or not at all, in the place of an earlier one."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder of that name."""

    def names(self, path: str) -> list[str]:
        """Return the names in the folder, sorted; none where there is no folder."""

    def make(self, path: str) -> None:
        """Make the folder, and those above it, where they are missing."""

    def remove(self, path: str) -> None:
        """Remove the file, or the folder with all that is in it, if it is there."""

    def below(self, path: str) -> Folder:
        """Return a folder in it."""


class HadoopFolder:
    """A `Folder` by the JVM of a session. For any thread."""

    def __init__(self, session: SparkSession, uri: str) -> None:
        jvm: Any = session._jvm  # noqa: SLF001 - PySpark offers no other way
        state = session._jsparkSession.sessionState()  # noqa: SLF001
        self._root = uri.rstrip("/")
        self._path = jvm.org.apache.hadoop.fs.Path
        try:
            managers = jvm.org.apache.spark.sql.execution.streaming
            made = getattr(managers, "CheckpointFileManager$")
            self._files = getattr(made, "MODULE$").create(
                self._path(self._root), state.newHadoopConf()
            )
        except Py4JError as error:
            raise self._failed("used", "", error) from error
        self._session = session

    def uri(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def read(self, path: str) -> bytes | None:
        try:
            source = self._files.open(self._at(path))
            try:
                return bytes(source.readAllBytes())
            finally:
                source.close()
        except Py4JError as error:
            if _is_not_found(error):
                return None
            raise self._failed("read", path, error) from error

    def write(self, path: str, content: bytes) -> None:
        try:
            output = self._created(self._at(path))
            try:
                output.write(bytearray(content))
            except Py4JError:
                output.cancel()
                raise
            output.close()
        except Py4JError as error:
            raise self._failed("written", path, error) from error

    def exists(self, path: str) -> bool:
        try:
            return bool(self._files.exists(self._at(path)))
        except Py4JError as error:
            raise self._failed("looked at", path, error) from error

    def names(self, path: str) -> list[str]:
        try:
            found = self._files.list(self._at(path))
            return sorted(str(each.getPath().getName()) for each in found)
        except Py4JError as error:
            if _is_not_found(error):
                return []
            raise self._failed("listed", path, error) from error

    def make(self, path: str) -> None:
        try:
            self._files.mkdirs(self._at(path))
        except Py4JError as error:
            raise self._failed("made", path, error) from error

    def remove(self, path: str) -> None:
        try:
            self._files.delete(self._at(path))
        except Py4JError as error:
            if not _is_not_found(error):
                raise self._failed("removed", path, error) from error

    def below(self, path: str) -> HadoopFolder:
        return HadoopFolder(self._session, self.uri(path))

    def _created(self, file: Any) -> Any:
        """Return the stream that writes the file, whose folder is made where it is missing: some
        file systems don't."""
        try:
            return self._files.createAtomic(file, True)
        except Py4JError as error:
            if not _is_not_found(error):
                raise
        self._files.mkdirs(file.getParent())
        return self._files.createAtomic(file, True)

    def _at(self, path: str) -> Any:
        return self._path(self.uri(path))

    def _failed(self, done: str, path: str, error: Py4JError) -> SparkUnavailable:
        return SparkUnavailable(f"{self.uri(path)} could not be {done}: {words_of(error)}.")


def _is_not_found(error: Py4JError) -> bool:
    return (
        isinstance(error, Py4JJavaError) and error.java_exception.getClass().getName() == _NOT_FOUND
    )
