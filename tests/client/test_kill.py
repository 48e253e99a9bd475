"""kill -9 at random instants: what was acknowledged is there again, what was deleted is not."""

import random
import threading
import time

import pytest

import writers
from writers import Writer, check_everything

COLLECTION = "survivor"
ROUNDS = 30
WRITERS = 3

# A low threshold and a small log make graphs, checkpoints and new log files part of every round.
SETTINGS = {
    "optimizers_config": {"indexing_threshold": 200, "flush_interval_sec": 1},
    "wal_config": {"wal_capacity_mb": 1},
}


class Searcher(threading.Thread):
    """Searches until the server is gone; an answer that repeats an id is remembered."""

    def __init__(self, server, query):
        super().__init__(daemon=True)
        self.server, self.query, self.doubled, self.answers = server, query, None, 0

    def run(self):
        question = {"query": self.query.tolist(), "using": writers.TEXT, "limit": 50}
        while self.doubled is None:
            try:
                reply = self.server.call("POST", f"/collections/{COLLECTION}/points/query", question)
            except Exception:  # noqa: BLE001 - the server was killed, which is the point
                return
            ids = [p["id"] for p in reply.result["points"]]
            self.doubled = ids if len(set(ids)) < len(ids) else None
            self.answers += 1


def load_and_kill(server, states, words, rng, seed):
    """Writes from several clients, then kill -9 at an instant nobody can foresee."""
    threads = [
        Writer(server, COLLECTION, n, words.rows, f"{seed}/{rng.random()}", states[n])
        for n in range(WRITERS)
    ]
    searcher = Searcher(server, rng.choice(words.queries))
    for thread in (*threads, searcher):
        thread.start()
    time.sleep(rng.uniform(0.05, 1.3))
    server.kill()
    for thread in (*threads, searcher):
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert searcher.doubled is None, f"a search returned a point twice: {searcher.doubled}"
    return threads


def test_kill_9_at_random_instants_loses_nothing_that_was_acknowledged(new_server, words, seed):
    rng = random.Random(seed)
    server = new_server().start()
    writers.create(server.client(), COLLECTION, **SETTINGS)
    states, acknowledged = [{} for _ in range(WRITERS)], 0
    for turn in range(ROUNDS):
        why = f"seed {seed}, round {turn}"
        threads = load_and_kill(server, states, words, rng, seed)
        if turn % 5 == 4:
            # Die again at once, in the middle of the recovery.
            server.start(wait=False)
            time.sleep(rng.uniform(0.0, 0.3))
            server.kill()
        server.start()
        check_everything(server, COLLECTION, threads, why)
        states = [t.state for t in threads]
        acknowledged += sum(t.acknowledged for t in threads)
    assert acknowledged > 10 * ROUNDS, f"only {acknowledged} writes: too few to prove anything"
    print(f"{acknowledged} acknowledged operations, {sum(map(len, states))} points, seed {seed}")
    code, _ = server.stop(within=10)
    assert code == 0
    server.start()
    check_everything(server, COLLECTION, threads, f"seed {seed}, after a graceful stop")


@pytest.mark.parametrize("wait", ["true", "false"])
def test_the_write_before_a_kill_is_there_after_it(new_server, wait):
    """The instant after the acknowledgement is the hardest one."""
    server = new_server().start()
    body = {"vectors": {"size": 4, "distance": "Dot"}}
    server.call("PUT", "/collections/last", body).result
    for turn in range(8):
        point = {"id": turn, "vector": [turn, 1, 2, 3], "payload": {"turn": turn}}
        server.call("PUT", f"/collections/last/points?wait={wait}", {"points": [point]}).result
        server.kill()
        server.start()
        assert server.scroll_all("last") == [
            {"id": i, "vector": [i, 1, 2, 3], "payload": {"turn": i}} for i in range(turn + 1)
        ]


def test_a_deleted_point_stays_deleted_through_every_restart(new_server, words):
    server = new_server().start()
    client = server.client()
    writers.create(client, COLLECTION, **SETTINGS)
    writers.bulk(client, COLLECTION, range(600), words.rows)
    path = f"/collections/{COLLECTION}/points"
    server.wait_until_idle(COLLECTION, within=60)
    gone = list(range(0, 600, 3))
    server.call("POST", f"{path}/delete?wait=false", {"points": gone}).result
    for restart in ("kill", "stop", "kill"):
        server.kill() if restart == "kill" else server.stop(within=10)
        server.start()
        assert [p["id"] for p in server.scroll_all(COLLECTION)] == [
            i for i in range(600) if i % 3
        ]
        for i in gone[::40]:
            query = {"query": words.rows[i].tolist(), "using": writers.TEXT, "limit": 600}
            hits = server.call("POST", f"{path}/query", query).result["points"]
            assert not {h["id"] for h in hits} & set(gone) and len(hits) == 400


def test_a_filtered_delete_is_not_decided_again_by_the_replay(new_server):
    """Field report D1: a delete by filter was logged as a filter and caught later points."""
    server = new_server().start()
    body = {"vectors": {"size": 2, "distance": "Dot"}}
    server.call("PUT", "/collections/d1", body).result
    path = "/collections/d1/points"

    def nine(method, suffix, body):
        server.call(method, f"{path}{suffix}?wait=true", body).result

    matching = {"filter": {"must": [{"key": "num", "match": {"value": 9}}]}}
    nine("PUT", "", {"points": [{"id": i, "vector": [i, 0], "payload": {"num": 5}} for i in (1, 2)]})
    nine("POST", "/payload", {"payload": {"num": 9}, "points": [2]})
    nine("POST", "/delete", matching)
    nine("POST", "/payload", {"payload": {"num": 9}, "points": [1]})
    nine("PUT", "", {"points": [{"id": 2, "vector": [7, 0], "payload": {"num": 9}}]})
    live = server.scroll_all("d1")
    assert [(p["id"], p["payload"]) for p in live] == [(1, {"num": 9}), (2, {"num": 9})]
    server.kill()
    server.start()
    assert server.scroll_all("d1") == live


def test_indexing_resumes_by_itself_after_a_kill(new_server, words):
    """Field report L6: after a restart the work waited for the next write."""
    server = new_server().start()
    client = server.client()
    writers.create(client, COLLECTION, **SETTINGS)
    writers.bulk(client, COLLECTION, range(4000), words.rows)
    server.kill()
    server.start()
    info = server.wait_until_idle(COLLECTION, within=120)
    assert info["points_count"] == 4000
    threshold_rows = 200 * 1024 // (384 * 4)
    assert info["indexed_vectors_count"] >= 4000 - threshold_rows
