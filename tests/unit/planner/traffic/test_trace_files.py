"""Traces as people have them: read exactly, or refused with the line."""

import gzip
import io
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.planner.traffic import trace
from genai_finops.planner.traffic.errors import TrafficError
from genai_finops.planner.traffic.files import open_traffic
from genai_finops.planner.traffic.trace import UNDATED_START, read_trace, write_trace

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
OWN = "arrival_seconds,input_tokens,output_tokens\n"


@pytest.fixture
def file(tmp_path):
    def write(content, name="trace.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def columns(traffic):
    chunks = list(traffic.chunks())
    return [
        np.concatenate([getattr(chunk, name) for chunk in chunks]).tolist()
        for name in ("arrival_seconds", "input_tokens", "output_tokens")
    ]


def test_azures_times_start_at_the_first_request_and_keep_their_resolution(file):
    found = read_trace(
        file(
            AZURE + "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:03.9799601,3180,8\n2023-11-17 00:00:00,1,2\n"
        )
    )
    assert found.start == datetime(2023, 11, 16, 18, 17, 3, 979960, tzinfo=UTC)
    arrivals, given, generated = columns(found)
    assert arrivals == pytest.approx([0, 1e-7, 20576.02004], rel=1e-12)
    assert (given, generated) == ([4808, 3180, 1], [10, 8, 2])
    assert (found.requests, found.duration_seconds) == (3, arrivals[-1])


def test_burstgpts_seconds_are_counted_from_the_first_request(file):
    found = read_trace(file(BURST + "5,ChatGPT,472,18,490,Conversation log\n45.5,GPT-4,1087,230,1317,API log\n"))
    assert columns(found) == [[0, 40.5], [472, 1087], [18, 230]]
    assert found.start == UNDATED_START


def test_rows_without_tokens_are_left_out_and_counted_in_the_name(file):
    found = read_trace(file(BURST + "1,a,10,0,10,x\n2,a,10,5,15,x\n3,a,10,5,15,x\n"))
    assert (found.requests, found.left_out) == (2, 1)
    assert found.name == "trace.csv without 1 empty rows"
    assert columns(found)[0] == [0, 1]


@pytest.mark.parametrize("wrapped", ["\ufeff{}", "{}"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_what_editors_do_to_a_file_does_not_matter(file, wrapped, ending):
    text = wrapped.format(AZURE + "2026-01-05T09:00:00Z,1,1\n" + '"2026-01-05T10:00:00+00:00","2","3"\n\n')
    assert columns(read_trace(file(text.replace("\n", ending))))[0] == [0, 3600]


def test_zones_are_honoured(file):
    found = read_trace(file(AZURE + "2026-01-05 09:00:00+01:00,1,1\n2026-01-05 09:00:00Z,1,1\n"))
    assert found.start == datetime(2026, 1, 5, 8, tzinfo=UTC)
    assert found.duration_seconds == 3600


def test_a_packed_trace_is_the_same(file):
    text = AZURE + "2026-01-05 09:00:00,1,1\n2026-01-05 09:00:01,1,1\n"
    packed = open_traffic(str(file(gzip.compress(text.encode()), "trace.csv.gz")), 0)
    assert columns(packed) == columns(read_trace(file(text)))


def test_a_long_trace_comes_in_chunks_and_reads_the_same_each_time(file, monkeypatch):
    monkeypatch.setattr(trace, "CHUNK_REQUESTS", 7)
    found = read_trace(file(OWN + "".join(f"{second},1,1\n" for second in range(20))))
    assert [len(chunk) for chunk in found.chunks()] == [7, 7, 6]
    assert columns(found) == columns(found)


TIME = "2026-01-05 09:00:00"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is empty"),
        (AZURE, "holds no requests"),
        (OWN + "0,1,0\n", "holds no requests"),
        (OWN + "0,1,1\n", "holds 1 request at one moment"),
        (OWN + "1,1,1\n1,1,1\n", None),
        ("a,b,c\n1,2,3\n", r"line 1 has the columns a, b, c(.|\n)*Known are: TIMESTAMP"),
        (AZURE + f"{TIME},1,1\n2026-01-05 08:59:59,1,1\n", "line 3 comes before the line above"),
        (AZURE + f"{TIME},-1,1\n", "line 2 has ContextTokens '-1'"),
        (AZURE + f"{TIME},1.5,1\n", "line 2 has ContextTokens '1.5'"),
        (AZURE + f"{TIME},1,nan\n", "line 2 has GeneratedTokens 'nan'"),
        (AZURE + f"{TIME},1,10000001\n", "Use a whole number from 0 to 10,000,000"),
        (AZURE + f"{TIME},1,\n", "line 2 has GeneratedTokens ''"),
        (AZURE + f"{TIME},1\n", "line 2 has 2 values"),
        (AZURE + "yesterday,1,1\n", "line 2 has the time 'yesterday'"),
        (AZURE + "2026-02-30 09:00:00,1,1\n", "There is no such day"),
        (AZURE + "2026-01-05 24:00:00,1,1\n", "hours up to 23"),
        (AZURE + f"{TIME},1,1\n{TIME}Z,1,1\n", "line 3 has the time(.|\n)*every time a zone, or none"),
        (OWN + "inf,1,1\n", "line 2 has arrival_seconds 'inf'"),
        (OWN + "-1,1,1\n", "line 2 has arrival_seconds '-1'"),
        (OWN + "nan,1,1\n", "line 2 has arrival_seconds 'nan'"),
        (b"\xff\xfe\x00", "is not text"),
        (AZURE.encode() + b"2026-01-05 09:00:00,1,1\n\xff\n", "line 3 is not text|is not text"),
        ("# start: soon, duration_seconds: 1\n" + OWN, "line 1 is '# start: soon"),
        ("# start: 2026-01-05T00:00:00+00:00, duration_seconds: 1\n" + OWN + "0,1,1\n5,1,1\n", "duration of 1 s"),
    ],
)
def test_a_bad_line_is_named_with_what_it_holds(file, content, expected):
    path = file(content)
    if expected is None:
        assert read_trace(path).duration_seconds == 1
        return
    with pytest.raises(TrafficError, match=expected) as error:
        read_trace(path)
    assert str(path) in str(error.value)


def test_a_broken_packed_file_is_refused(file):
    packed = gzip.compress((AZURE + f"{TIME},1,1\n" * 1000).encode())
    for content in (packed[:-20], b"not packed"):
        with pytest.raises(TrafficError, match=r"gzip|is not text"):
            read_trace(file(content, "trace.csv.gz"))


REQUESTS = st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 10**7), st.integers(1, 10**7)), min_size=2, max_size=40)


@given(REQUESTS.filter(lambda rows: max(rows)[0] > 0))
def test_what_is_written_is_read_back_the_same_to_the_bit(tmp_path_factory, rows):
    rows = sorted(rows)
    folder = tmp_path_factory.mktemp("traces")
    first = folder / "first.csv"
    first.write_text(OWN + "".join(f"{arrival!r},{given},{generated}\n" for arrival, given, generated in rows))
    traffic = read_trace(first)
    stream = io.StringIO()
    write_trace(traffic, stream)
    (folder / "second.csv").write_text(stream.getvalue())
    again = read_trace(folder / "second.csv")
    assert columns(again) == columns(traffic) == [list(column) for column in zip(*rows, strict=True)]
    assert (again.start, again.duration_seconds) == (traffic.start, traffic.duration_seconds)


def test_a_generated_traffic_replays_the_same_to_the_bit(tmp_path):
    traffic = open_traffic("azure-conversation", 3)
    with (tmp_path / "replay.csv").open("w") as stream:
        write_trace(traffic, stream)
    again = open_traffic(str(tmp_path / "replay.csv"), 0)
    assert columns(again) == columns(traffic)
    assert (again.start, again.duration_seconds) == (traffic.start, traffic.duration_seconds)


def test_what_is_neither_a_file_nor_a_name_is_refused(tmp_path):
    with pytest.raises(TrafficError, match=r"one of article, azure-conversation, azure-code"):
        open_traffic("traffic.txt", 0)
    with pytest.raises(FileNotFoundError):
        open_traffic(str(tmp_path / "none.csv"), 0)
