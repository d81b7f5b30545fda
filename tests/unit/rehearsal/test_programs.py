"""Programs start with what they are given, end together, and leave nothing behind."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from genai_finops.rehearsal.processes import ProcessError, Programs, free_ports, listens

PATIENCE_SECONDS = 20


def python(text):
    return [sys.executable, "-c", textwrap.dedent(text)]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(holds):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def programs(tmp_path):
    with Programs(tmp_path / "logs") as found:
        yield found


def test_a_program_gets_what_it_is_given_and_nothing_else_of_the_environment(programs, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do not tell")
    program = programs.start("one", python("import os; print(sorted(os.environ))"), {"GIVEN": "1"})
    program.process.wait()
    assert "GIVEN" in program.last_lines()
    assert "AWS_SECRET_ACCESS_KEY" not in program.last_lines()


def test_one_that_ends_before_it_is_ready_is_explained_with_its_last_words(programs):
    program = programs.start("one", python("import sys; print('no such flag'); sys.exit(3)"))
    with pytest.raises(ProcessError, match=r"one ended with 3(.|\n)*no such flag"):
        programs.wait_for(program, lambda: False, PATIENCE_SECONDS)


def test_one_that_does_not_get_ready_is_explained_as_well(programs):
    program = programs.start("one", python("import time; print('thinking', flush=True); time.sleep(60)"))
    eventually(program.last_lines)
    with pytest.raises(ProcessError, match=r"was not ready within 0.1 s(.|\n)*thinking"):
        programs.wait_for(program, lambda: False, 0.1)


def test_children_of_a_program_end_with_it(programs):
    program = programs.start(
        "one",
        python(
            """
            import subprocess, sys, time
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            print(child.pid, flush=True)
            time.sleep(600)
            """
        ),
    )
    eventually(lambda: program.last_lines().strip().isdigit())
    child = int(program.last_lines())
    programs.stop()
    assert not program.is_running
    eventually(lambda: not is_alive(child))


def test_one_that_does_not_listen_to_reason_is_ended_all_the_same(programs):
    program = programs.start(
        "one",
        python(
            """
            import signal, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("deaf", flush=True)
            time.sleep(600)
            """
        ),
    )
    eventually(lambda: "deaf" in program.last_lines())
    program.stop(patience_seconds=0.1)
    assert program.process.returncode == -signal.SIGKILL


def test_they_are_stopped_in_the_opposite_order_of_their_start(tmp_path):
    ended = tmp_path / "ended"
    say = """
        import signal, sys, time
        def end(*_):
            with open({file!r}, "a") as file: file.write({name!r})
            sys.exit(0)
        signal.signal(signal.SIGTERM, end)
        print("ready", flush=True)
        time.sleep(600)
    """
    with Programs(tmp_path / "logs") as programs:
        for name in "abc":
            program = programs.start(name, python(say.format(file=str(ended), name=name)))
            programs.wait_for(program, lambda program=program: "ready" in program.last_lines(), PATIENCE_SECONDS)
    assert ended.read_text() == "cba"
    programs.stop()  # twice does no harm


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children that their parent has died")
def test_when_the_rehearsal_is_killed_its_programs_die(tmp_path):
    starter = f"""
        import sys, time
        from pathlib import Path
        from genai_finops.rehearsal.processes import Programs
        programs = Programs(Path({str(tmp_path / "logs")!r}))
        program = programs.start("one", [sys.executable, "-c", "import time; time.sleep(600)"])
        print(program.process.pid, flush=True)
        time.sleep(600)
    """
    parent = subprocess.Popen(python(starter), stdout=subprocess.PIPE, text=True, cwd=Path.cwd())
    child = int(parent.stdout.readline())
    assert is_alive(child)
    parent.kill()
    parent.wait()
    eventually(lambda: not is_alive(child))


def test_free_ports_are_different_and_free():
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert not any(listens(port) for port in ports)
