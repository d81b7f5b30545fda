"""Outputs appear whole or not at all, whatever goes wrong and whenever."""

import os
from pathlib import Path

import pytest

from stacks.outputs import replaced, reuse_assets


def written(folder, content):
    folder.mkdir(parents=True)
    (folder / "file").write_text(content)
    return folder


def contents(root):
    return {str(file.relative_to(root)): file.read_text() for file in sorted(root.rglob("*")) if file.is_file()}


def test_what_was_staged_takes_the_places_of_the_targets(tmp_path):
    first = written(tmp_path / "first", "old")
    (first / "left-over").touch()
    with replaced(first, tmp_path / "deep" / "second") as (one, two):
        (one / "file").write_text("new")
        (two / "file").write_text("new")
        assert (first / "file").read_text() == "old"
    assert contents(tmp_path) == {"first/file": "new", "deep/second/file": "new"}
    assert {folder.name for folder in tmp_path.iterdir()} == {"first", "deep"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_earlier_outputs_and_no_staging_folders(tmp_path, error):
    target = written(tmp_path / "target", "old")

    def stop_half_way():
        with replaced(target, tmp_path / "other") as (staged, _):
            (staged / "file").write_text("half of")
            raise error

    with pytest.raises(error):
        stop_half_way()
    assert contents(tmp_path) == {"target/file": "old"}
    assert list(tmp_path.iterdir()) == [target]


def test_when_the_second_cannot_take_its_place_the_first_goes_back(tmp_path, monkeypatch):
    first, second = written(tmp_path / "first", "old"), written(tmp_path / "second", "old")
    rename = Path.rename

    def refuse(self, target):
        if target == second and "old" not in self.name:
            raise PermissionError
        return rename(self, target)

    def swap():
        with replaced(first, second) as (one, two):
            (one / "file").write_text("new")
            (two / "file").write_text("new")
            monkeypatch.setattr(Path, "rename", refuse)

    with pytest.raises(PermissionError):
        swap()
    assert contents(tmp_path) == {"first/file": "old", "second/file": "old"}


def test_when_the_second_cannot_even_be_staged_nothing_is_left_of_the_first(tmp_path):
    blocker = tmp_path / "dist"
    blocker.write_text("a file where a folder should go")
    with pytest.raises(FileExistsError), replaced(tmp_path / "first", blocker / "second"):
        pass
    assert list(tmp_path.iterdir()) == [blocker]


def test_an_output_folder_that_is_a_link_stays_one(tmp_path):
    elsewhere = written(tmp_path / "elsewhere" / "outputs", "old")
    link = tmp_path / "outputs"
    link.symlink_to(elsewhere)
    with replaced(link) as (staged,):
        (staged / "file").write_text("new")
    assert link.is_symlink()
    assert (elsewhere / "file").read_text() == "new"
    assert list(elsewhere.parent.iterdir()) == [elsewhere]


def test_large_assets_are_linked_not_copied(tmp_path):
    earlier, staging = tmp_path / "earlier", tmp_path / "staging"
    for folder in (earlier, staging):
        folder.mkdir()
    (earlier / "asset.abc.zip").write_text("layer")
    (earlier / "network.template.json").write_text("old")
    (earlier / "network.assets.json").write_text('{"path": "asset.abc.zip"}')
    reuse_assets(earlier, staging)
    assert [file.name for file in staging.iterdir()] == ["asset.abc.zip"]
    assert (staging / "asset.abc.zip").samefile(earlier / "asset.abc.zip")


def test_assets_that_were_not_used_any_more_are_left_behind(tmp_path):
    earlier, staging = tmp_path / "earlier", tmp_path / "staging"
    for folder in (earlier, staging):
        folder.mkdir()
    (earlier / "asset.abc.zip").write_text("last month's functions")
    (earlier / "automation.assets.json").write_text('{"path": "asset.def.zip"}')
    reuse_assets(earlier, staging)
    assert list(staging.iterdir()) == []


def test_without_an_earlier_synth_there_is_nothing_to_link(tmp_path):
    reuse_assets(tmp_path / "missing", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_where_files_cannot_be_linked_they_are_copied_by_cdk(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError

    (tmp_path / "asset.abc.zip").touch()
    (tmp_path / "network.assets.json").write_text('{"path": "asset.abc.zip"}')
    monkeypatch.setattr(os, "link", refuse)
    reuse_assets(tmp_path, tmp_path / "staging")
