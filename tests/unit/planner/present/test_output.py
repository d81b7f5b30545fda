"""A file is there whole or not at all."""

import os
import stat

import pytest

from genai_finops.planner.present import output


def test_what_was_there_stays_when_writing_fails(tmp_path):
    target = tmp_path / "page.html"
    target.write_text("before", encoding="utf-8")

    def fill(stream):
        stream.write("half")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        output.write_whole(target, fill)
    assert target.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual(tmp_path):
    kept, new = tmp_path / "kept", tmp_path / "new"
    kept.write_text("before", encoding="utf-8")
    kept.chmod(0o640)
    for file in (kept, new):
        output.write("after\n", file)
    usual = tmp_path / "usual"
    usual.touch()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    target.write_text("before", encoding="utf-8")
    link.symlink_to(target)
    output.write("after", link)
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "after"


def test_folders_are_made(tmp_path):
    output.write("x", tmp_path / "a" / "b" / "page")
    assert (tmp_path / "a" / "b" / "page").read_text(encoding="utf-8") == "x"


def test_a_device_is_written_to():
    output.write("x", output.Path(os.devnull))
