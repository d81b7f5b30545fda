"""The controllers are those that the platform pins, built once; what is missing to build them is said."""

import re
import stat

import pytest

from genai_finops import versions
from genai_finops.rehearsal import binaries, definitions
from genai_finops.rehearsal.binaries import BINARIES, CONTROLLERS, BuildError, built, find_go

PINNED = {
    "karpenter": ("github.com/aws/karpenter-provider-aws", f"v{versions.KARPENTER.version}"),
    "keda": ("github.com/kedacore/keda/v2", f"v{versions.KEDA.version}"),
}


def required(module):
    """Version by path, as the module's file asks for it."""
    text = (CONTROLLERS / module / "go.mod").read_text()
    return dict(re.findall(r"^\s*(?:require )?([\w./-]+\.[\w./-]+) (v\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("module", PINNED)
def test_a_controller_is_built_in_the_version_that_the_platform_installs(module):
    path, version = PINNED[module]
    assert required(module)[path] == version


def test_kubernetes_is_built_in_the_minor_version_of_the_platform():
    assert required("kubernetes")["k8s.io/kubernetes"].startswith(f"v{versions.KUBERNETES}.")


def test_every_program_is_a_tool_of_its_module_and_every_module_is_used():
    for binary in BINARIES.values():
        assert binary.package in (CONTROLLERS / binary.module / "go.mod").read_text()
    assert {binary.module for binary in BINARIES.values()} == {
        file.parent.name for file in CONTROLLERS.glob("*/go.mod")
    }


@pytest.fixture
def go(tmp_path, monkeypatch):
    """Makes another Go the only one there is."""

    def put(script):
        command = tmp_path / "bin" / "go"
        command.parent.mkdir()
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return put


def test_without_go_one_sentence_says_what_to_install(go):
    with pytest.raises(BuildError, match=r"takes Go 1\.26 or newer: install it"):
        find_go()


@pytest.mark.parametrize("version", ["go1.19.8", "go1.25.1", ""])
def test_an_old_go_is_named(go, version):
    go(f"echo {version}")
    with pytest.raises(BuildError, match=f"{version.removeprefix('go')}$"):
        find_go()


@pytest.mark.parametrize("version", ["go1.26.0", "go1.27rc1", "go2.0"])
def test_a_newer_go_will_do(go, version):
    go(f"echo {version}")
    assert find_go().endswith("/bin/go")


BUILDS = """
case "$1" in
  env) echo go1.26.0 ;;
  build) while [ "$1" != -o ]; do shift; done; echo made > "$2"; echo one >> "$COUNT" ;;
esac
"""


def test_a_program_is_built_once_and_told(go, tmp_path, monkeypatch):
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    go(BUILDS)
    lines = []
    first = built(["etcd"], lines.append)
    assert built(["etcd"], lines.append) == first
    assert first["etcd"].read_text() == "made\n"
    assert (tmp_path / "count").read_text() == "one\n"
    assert lines == ["building etcd from go.etcd.io/etcd/server/v3"]


def test_a_module_that_changed_is_built_anew(go, tmp_path, monkeypatch):
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    go(BUILDS)
    before = built(["etcd"])["etcd"]
    copy = tmp_path / "controllers" / "etcd"
    copy.mkdir(parents=True)
    for name in ("go.mod", "go.sum"):
        (copy / name).write_bytes((CONTROLLERS / "etcd" / name).read_bytes() + b"\n")
    monkeypatch.setattr(binaries, "CONTROLLERS", copy.parent)
    assert built(["etcd"])["etcd"] != before


def test_a_build_that_fails_says_why_and_leaves_nothing(go, tmp_path):
    go('[ "$1" = env ] && echo go1.26.0 || { echo "no space left on device" >&2; exit 1; }')
    with pytest.raises(BuildError, match=r"etcd could not be built(.|\n)*no space left on device"):
        built(["etcd"])
    assert [file.name for file in (tmp_path / "cache").rglob("etcd*") if file.is_file()] == []


def test_sources_that_are_not_what_they_were_are_refused(go, tmp_path):
    answer = f'{{"Dir": "{tmp_path}", "Sum": "h1:other"}}'
    go(f"""[ "$1" = env ] && echo go1.26.0 || echo '{answer}'""")
    with pytest.raises(BuildError, match="do not use them"):
        definitions._definitions(definitions.FETCHED[0])


def test_sources_that_cannot_be_had_are_named(go):
    go("""[ "$1" = env ] && echo go1.26.0 || echo '{"Error": "404 Not Found"}'""")
    with pytest.raises(BuildError, match=r"sigs\.k8s\.io/gateway-api v1\.6\.1 cannot be had: 404"):
        definitions._definitions(definitions.FETCHED[0])
