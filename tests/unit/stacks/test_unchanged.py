"""A synth is left out only when it would make what is already there."""

import json

import pytest

from stacks import unchanged
from stacks.unchanged import Made, earlier, fingerprint, record

MADE = Made({"demo-network": 26}, {"vllm": 4})


@pytest.fixture
def root(tmp_path):
    """A checkout as far as a fingerprint looks."""
    for folder in unchanged.CODE:
        (tmp_path / folder / "deeper").mkdir(parents=True)
        (tmp_path / folder / "deeper" / "code.py").write_text("a = 1\n")
    for name in unchanged.FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    (tmp_path / "platform.yaml").write_text("name: demo\n")
    return tmp_path


@pytest.fixture
def outputs(tmp_path):
    folders = [tmp_path / "out" / "assembly", tmp_path / "out" / "manifests"]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "made").write_text("1")
    record(MADE, "inputs", folders)
    return folders


def of(root):
    return fingerprint(root / "platform.yaml", root)


def test_the_same_checkout_has_the_same_fingerprint_wherever_its_files_are_dated(root):
    before = of(root)
    for file in root.rglob("*.py"):
        file.touch()
    assert of(root) == before


@pytest.mark.parametrize(
    "file", ["platform.yaml", *unchanged.FILES, *(f"{folder}/deeper/code.py" for folder in unchanged.CODE)]
)
def test_a_change_of_any_input_changes_the_fingerprint(root, file):
    before = of(root)
    with (root / file).open("a") as opened:
        opened.write("# more\n")
    assert of(root) != before


def test_a_new_a_renamed_and_a_removed_file_change_the_fingerprint(root):
    prints = [of(root)]
    new = root / "stacks" / "new.yaml"
    new.write_text("")
    prints.append(of(root))
    new = new.rename(root / "stacks" / "newer.yaml")
    prints.append(of(root))
    assert len(set(prints)) == 3
    new.unlink()
    assert of(root) == prints[0]


def test_bytecode_is_no_input(root):
    before = of(root)
    (root / "stacks" / "code.cpython-311.pyc").write_bytes(b"1")
    assert of(root) == before


def test_settings_of_the_cdk_are_inputs_and_others_are_not(root, monkeypatch):
    before = of(root)
    monkeypatch.setenv("EDITOR", "ed")
    assert of(root) == before
    monkeypatch.setenv("CDK_VALIDATION", "false")
    assert of(root) != before


def test_what_was_made_from_the_same_inputs_is_not_made_again(outputs):
    assert earlier("inputs", outputs) == MADE


def test_other_inputs_are_made_again(outputs):
    assert earlier("others", outputs) is None


@pytest.mark.parametrize("folder", [0, 1])
def test_outputs_that_were_touched_are_made_again(outputs, folder):
    (outputs[folder] / "made").write_text("2")
    assert earlier("inputs", outputs) is None


@pytest.mark.parametrize("folder", [0, 1])
def test_outputs_that_lost_or_gained_a_file_are_made_again(outputs, folder):
    (outputs[folder] / "more").touch()
    assert earlier("inputs", outputs) is None
    (outputs[folder] / "more").unlink()
    assert earlier("inputs", outputs) == MADE
    (outputs[folder] / "made").unlink()
    assert earlier("inputs", outputs) is None


@pytest.mark.parametrize("note", ["", "[]", "{}", "null", "\x00", json.dumps({"inputs": "inputs", "outputs": 1})])
def test_a_record_that_makes_no_sense_is_no_record(outputs, note):
    (outputs[0] / unchanged.RECORD).write_text(note)
    assert earlier("inputs", outputs) is None


def test_without_outputs_there_is_nothing_to_keep(tmp_path):
    assert earlier("inputs", [tmp_path / "none", tmp_path / "neither"]) is None
