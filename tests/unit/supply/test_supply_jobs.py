"""`make stage` and `make compile`: the job that a deploy would apply, and its end."""

import json
import os
import stat

import pytest

from genai_finops.supply import jobs
from genai_finops.supply.jobs import JobError, find, run
from k8s_charts import to_yaml
from tests.unit.k8s_charts.charts import charts

pytestmark = pytest.mark.synth


def manifests(name="rich"):
    return to_yaml(charts(name)["supply"])


class Cluster:
    """What kubectl would answer: the conditions of the job, one look after the other."""

    def __init__(self, *looks, log="the last line"):
        self.looks = list(looks)
        self.log = log
        self.applied = []
        self.said = []

    def kubectl(self, arguments, given):
        match arguments[0]:
            case "apply":
                self.applied.append(json.loads(given))
                return "job.batch/x created"
            case "get":
                return json.dumps({"status": {"conditions": self.looks.pop(0)}})
            case "logs" if self.log is not None:
                return self.log
        raise JobError("pods not found")

    def run(self, job):
        run(job, self.kubectl, self.said.append, lambda _: None)


def condition(kind, message=""):
    return [{"type": kind, "status": "True", "message": message}]


@pytest.mark.parametrize("step", ["stage", "compile"])
def test_the_job_is_the_one_that_a_deploy_applies(step):
    job = find(manifests(), step, "llama3-8b")
    assert job in charts("rich")["supply"]
    cluster = Cluster(condition("Complete"))
    cluster.run(job)
    assert cluster.applied == [job]


def test_a_model_without_the_step_is_refused_with_those_that_have_it():
    with pytest.raises(JobError, match=r"No model 'mistral-7b' has a step 'compile'. It is there for: llama3-8b."):
        find(manifests(), "compile", "mistral-7b")


def test_it_waits_until_the_job_is_done():
    cluster = Cluster([], [{"type": "Complete", "status": "False"}], condition("Complete"))
    cluster.run(find(manifests(), "stage", "llama3-8b"))
    assert cluster.looks == []
    assert "the last line" in cluster.said
    assert cluster.said[-1].endswith("is done")


@pytest.mark.parametrize(("log", "shown"), [("out of memory", "out of memory"), (None, "pods not found")])
def test_a_failure_says_why_and_shows_the_last_lines_where_there_are_any(log, shown):
    cluster = Cluster([], condition("Failed", "Job has reached the specified backoff limit"), log=log)
    with pytest.raises(JobError, match="backoff limit") as raised:
        cluster.run(find(manifests(), "compile", "llama3-8b"))
    assert shown in str(raised.value)


@pytest.fixture
def fake_kubectl(tmp_path, monkeypatch):
    def install(text):
        program = tmp_path / "kubectl"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return install


def test_kubectl_gets_the_manifest_and_its_answer_comes_back(fake_kubectl):
    fake_kubectl('echo "$@"; cat')
    assert jobs.call(["apply", "-f", "-"], "a manifest") == "apply -f -\na manifest"


def test_what_kubectl_refuses_is_said_in_its_words(fake_kubectl):
    fake_kubectl("echo 'error: You must be logged in to the server' >&2; exit 1")
    with pytest.raises(JobError, match="You must be logged in"):
        jobs.call(["get", "job"], "")


def test_without_kubectl_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JobError, match="kubectl is not installed"):
        jobs.call(["version"], "")
