"""The benchmark program against the real server, by REST and by gRPC. No time is judged."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import flatwater_data
from flatwater_process import binary


def program():
    """It stands beside the server, as `cargo xtask client` puts it."""
    return str(Path(binary()).with_name("flatwater-bench"))


def words(server, out, *more):
    return [
        program(), "optimizers", "--data", str(flatwater_data.IN_REPOSITORY), "--queries", "30",
        "--vector", "dense", "--passes", "1", "--poll-ms", "100", "--out", str(out), *more,
    ]  # fmt: skip


def phase(run, name):
    trial = run["trials"][0]
    assert "failed" not in trial and "not_run" not in trial, trial
    (found,) = [phase for phase in trial["phases"] if phase["name"] == name]
    return found


def study(server, out, *more):
    done = subprocess.run(words(server, out, *more), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    run = json.loads((out / "run.json").read_text())
    assert run["target"]["process"] == server.process.pid
    assert "flatwater" in run["target"]["version"], run["target"]
    steady = phase(run, "steady")
    assert steady["calls"] == 30 and steady["failed"] == steady["timed_out"] == 0
    assert steady["recall"] > 0.9
    assert steady["server_ms"]["p50"] > 0 and steady["client_work_ms"]["p50"] > 0
    upload = phase(run, "upload")
    assert upload["server"]["cpu_s"] > 0 and upload["server"]["resident_mb"] > 0
    fresh = run["trials"][0]["freshness"]
    assert fresh["markers"] == fresh["found_at_once"] >= 1
    return run


def test_a_study_runs_by_rest(server, tmp_path):
    more = ["--rows", "2000", "--configurations", "A1", "--loops", "closed", "--target", server.url]
    run = study(server, tmp_path / "run", *more)
    assert run["target"]["kind"] == "rest" and run["data"]["rows"] == 2000


def test_a_study_runs_by_grpc(server, tmp_path):
    more = ["--rows", "2000", "--configurations", "D1", "--loops", "open", "--rate", "100"]
    more += ["--target", f"grpc://127.0.0.1:{server.grpc_port}", "--rest", server.url]
    run = study(server, tmp_path / "run", *more)
    assert run["target"]["kind"] == "grpc"
    assert phase(run, "churn")["recall"] > 0.9
    assert phase(run, "steady")["pacing_error_ms"]["p50"] >= 0


def test_an_interrupted_run_keeps_what_it_measured(server, tmp_path):
    more = ["--configurations", "A1", "--passes", "100000", "--loops", "closed", "--target", server.url]
    out = tmp_path / "run"
    running = subprocess.Popen(
        words(server, out, "--rows", "1000", *more), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        until = time.monotonic() + 60
        while b"steady" not in running.stderr.readline():
            assert time.monotonic() < until and running.poll() is None
        os.kill(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 0, said
    finally:
        running.kill()
    run = json.loads((out / "run.json").read_text())
    assert run["interrupted"] is True
    assert 0 < phase(run, "steady")["calls"] < 3_000_000
    assert "interrupted" in (out / "report.html").read_text()


def test_a_server_that_is_not_there_is_said(tmp_path):
    more = ["--rows", "100", "--target", "http://127.0.0.1:1"]
    done = subprocess.run(words(None, tmp_path / "run", *more), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "connection" in done.stderr, done.stderr
