"""Session files of dead processes: their notes, which ones are useful, and what is removed with them."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.capture.session_files import LONGEST_NOTE, SessionFile, read_session_file
from pytest_opprof.errors import CollectorError, RecoveryError
from pytest_opprof.recovery.sessions import Note, is_leftover, left_sessions, project_of, remove

DAY_NS = 24 * 3600 * 10**9
RECORDS = """
import os, signal, sys
from pytest_opprof.capture.collector import Collector
collector = Collector.instance()
collector.open()
collector.note(b"p\\nw\\ntest_a")
collector.start()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def left(tmp_path: Path) -> SessionFile:
    """The session file of a process that was killed while it recorded."""
    done = subprocess.run(
        [sys.executable, "-c", RECORDS], env={**os.environ, "OPPROF_DIR": str(tmp_path)}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    (file,) = left_sessions([tmp_path])
    return file


@given(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=200))
def test_notes_survive_the_round_trip(node_id: str) -> None:
    note = Note(project="0123456789abcdef", worker="gw1", node_id=node_id)
    assert Note.of(bytes(note)) == note


def test_a_long_name_is_cut_and_never_torn_into_nonsense() -> None:
    note = Note(project="p", worker="", node_id="é" * LONGEST_NOTE)
    assert len(bytes(note)) == LONGEST_NOTE
    read = Note.of(bytes(note))
    assert read is not None
    assert note.node_id.startswith(read.node_id.rstrip("�"))


def test_foreign_bytes_are_not_a_note() -> None:
    assert Note.of(b"") is None
    assert Note.of(b"something else") is None


def test_projects_are_distinguished_by_folder(tmp_path: Path) -> None:
    assert project_of(tmp_path) == project_of(tmp_path)
    assert project_of(tmp_path) != project_of(tmp_path / "a")


def test_a_dead_process_is_found(left: SessionFile) -> None:
    assert not left.is_alive
    assert left.was_recording
    assert Note.of(left.note) == Note(project="p", worker="w", node_id="test_a")


def test_other_files_are_passed_over(left: SessionFile) -> None:
    folder, user = left.path.parent, os.getuid()
    (folder / f"opprof-{user}-1-1").write_bytes(b"not a session file")
    (folder / f"opprof-{user}-1-2").symlink_to(left.path)
    (folder / f"opprof-{user}-1-3").mkdir()
    os.mkfifo(folder / f"opprof-{user}-1-4")
    (folder / f"opprof-{user + 1}-1-5").write_bytes(left.path.read_bytes())
    (folder / "opprof-notes.txt").write_text("mine")
    assert list(left_sessions([folder, folder / "none"])) == [left]
    with pytest.raises(RecoveryError, match="not a session file"):
        read_session_file(folder / f"opprof-{user}-1-1")
    with pytest.raises(CollectorError):
        read_session_file(folder / "none")


def test_removal_takes_only_its_own_files(left: SessionFile) -> None:
    other = left.path.parent / "other.names"
    other.write_text("mine")
    remove(replace(left, spill_path=other))
    assert list(left.path.parent.iterdir()) == [other]


def test_removal_ignores_paths_in_the_header(left: SessionFile, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    link = tmp_path / f"opprof-{os.getuid()}-{left.pid}-abc.spill"
    link.symlink_to(victim)
    remove(replace(left, names_path=victim, spill_path=link))
    assert victim.read_text() == "mine"
    assert link.is_symlink()


def test_removing_twice_is_harmless(left: SessionFile) -> None:
    remove(left)
    remove(left)
    assert not list(left.path.parent.iterdir())


def test_recordings_are_kept_for_a_week(left: SessionFile) -> None:
    assert not is_leftover(left, now_ns=left.opened_ns + 6 * DAY_NS)
    assert is_leftover(left, now_ns=left.opened_ns + 8 * DAY_NS)


def test_uninformative_session_is_not_kept(left: SessionFile) -> None:
    silent = replace(left, was_recording=False, note=b"")
    assert is_leftover(silent, now_ns=left.opened_ns)
    assert not is_leftover(replace(silent, note=left.note), now_ns=left.opened_ns)
