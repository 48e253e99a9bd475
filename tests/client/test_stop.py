"""A graceful stop: quick in every situation, and nothing is lost by it."""

import signal
import threading

import pytest

import writers
from writers import Writer, bulk, check_everything

BUSY = {"optimizers_config": {"indexing_threshold": 50}}


def test_sigterm_during_indexing_ends_in_seconds_and_keeps_everything(new_server, words):
    server = new_server().start()
    writers.create(server, "busy", size=384, **BUSY)
    bulk(server, "busy", range(10_000, 14_000), words.rows)
    running = server.optimizations("busy")["running"]
    assert running, "indexing was meant to be at work"
    code, seconds = server.stop(within=10)
    assert code == 0, server.log()
    print(f"stopped in {seconds:.2f} s while indexing")
    server.start()
    ids = [p["id"] for p in server.scroll_all("busy", page=2000)]
    assert ids == list(range(10_000, 14_000))
    info = server.wait_until_idle("busy", within=120)
    assert info["indexed_vectors_count"] >= 4000 - 50 * 1024 // (384 * 4)


def test_sigterm_under_writes_keeps_what_was_acknowledged(new_server, words, seed):
    server = new_server().start()
    writers.create(server, "busy", **BUSY)
    threads = [Writer(server, "busy", n, seed) for n in range(2)]
    for thread in threads:
        thread.start()
    threading.Event().wait(1.5)
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(timeout=10) == 0, server.log()
    server.process = None
    for thread in threads:
        thread.join(timeout=30)
        # A write that came while the server was stopping may be refused, but not lost.
        if thread.refusal is not None:
            assert thread.refusal.status == 503, thread.refusal
            thread.refusal = None
    assert all(t.acknowledged for t in threads)
    server.start()
    check_everything(server, "busy", threads, f"seed {seed}")


@pytest.mark.parametrize("with_data", [False, True])
def test_an_idle_server_stops_at_once(new_server, words, with_data):
    server = new_server().start()
    if with_data:
        writers.create(server, "idle", size=384)
        bulk(server, "idle", range(500), words.rows)
    code, seconds = server.stop(within=10)
    assert code == 0 and seconds < 3
