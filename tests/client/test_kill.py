"""kill -9 at random instants: what was acknowledged is there again, what was deleted is not.

FLATWATER_KILLS=5000 makes so many kills of the 100 that the suite makes.
"""

import os
import random
import threading
import time

import pytest

import writers
from keeper import Keeper
from flatwater_process import CutOff, Session
from writers import Writer, check_everything

KILLS = int(os.environ.get("FLATWATER_KILLS", 100))

# Of so many kills one comes during the recovery from another one.
RECOVERIES_PER_KILL = 4

# After so many kills the data begins anew, so that each state of the files is met often.
KILLS_PER_DATA_SET = 25

# Collections under load: small segments, sealed all the time, with graphs and without; and one that grows
# and is checkpointed by the size of its log.
STEADY = {
    "sealing": {
        "optimizers_config": {
            "indexing_threshold": 1, "max_segment_size": 4, "flush_interval_sec": 1
        },
    },
    "flat": {
        "hnsw_config": {"m": 0},
        "optimizers_config": {"indexing_threshold": 1, "max_segment_size": 2},
    },
    "growing": {
        "optimizers_config": {"indexing_threshold": 1, "flush_interval_sec": 1},
        "wal_config": {"wal_capacity_mb": 1},
    },
}

COLLECTION = "survivor"

# A low threshold and a small log make graphs, checkpoints and new log files part of every round.
SETTINGS = {
    "optimizers_config": {"indexing_threshold": 200, "flush_interval_sec": 1},
    "wal_config": {"wal_capacity_mb": 1},
}


class Searcher(threading.Thread):
    """Searches until the server is gone; an answer that repeats an id is remembered."""

    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self.session, self.random = Session(server), random.Random(f"{seed}/searcher")
        self.wrong = None

    def run(self):
        while self.wrong is None:
            name, row = self.random.choice(list(STEADY)), self.random.randrange(1000)
            query = writers.vector_of(writers.TEXT, row, 0, writers.SIZE)
            question = {"query": query, "using": writers.TEXT, "limit": 50}
            try:
                reply = self.session.call("POST", f"/collections/{name}/points/query", question)
            except CutOff:
                return  # The server was killed, which is the point.
            ids = [p["id"] for p in reply.result["points"]] if reply.status == 200 else None
            if ids is None or len(set(ids)) < len(ids):
                self.wrong = reply.text
            time.sleep(0.02)  # The cores are for those who write.


class Load:
    """A data set, those who change it, and what must be in it."""

    def __init__(self, server):
        self.server = server
        self.states = {(name, number): {} for name in STEADY for number in range(2)}
        self.keeper_state = None
        self.acknowledged = self.kills = 0
        self.sealed = set()
        for name, settings in STEADY.items():
            writers.create(server, name, **settings)

    def kill(self, rng):
        """Changes from several clients, then kill -9 at an instant nobody can foresee."""
        seed = rng.random()
        self.writers = [
            Writer(self.server, name, number, seed, state)
            for (name, number), state in self.states.items()
        ]
        self.keeper = Keeper(self.server, list(STEADY), seed, self.keeper_state)
        searcher = Searcher(self.server, seed)
        changing = [*self.writers, self.keeper]
        threads = [*changing, searcher]
        for thread in threads:
            thread.start()
        # So many acknowledged operations, however fast the machine is; then an instant of its own.
        goal, deadline = rng.randrange(60), time.monotonic() + 10
        while sum(t.acknowledged for t in changing) < goal and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.02))
        self.server.kill()
        self.kills += 1
        for thread in threads:
            thread.join(timeout=30)
            assert not thread.is_alive()
        self.acknowledged += sum(t.acknowledged for t in changing)
        assert searcher.wrong is None, f"a search went wrong: {searcher.wrong}"

    def kill_recovery(self, rng):
        self.server.start(wait=False)
        time.sleep(rng.uniform(0.0, 0.1))
        self.server.kill()
        self.kills += 1

    def prove_something(self):
        """What the kills were meant to meet was there: writes, sealed segments, checkpoints."""
        assert self.acknowledged > 10 * self.kills, f"only {self.acknowledged} operations"
        assert len(self.sealed) > self.kills // 10, f"only {len(self.sealed)} sealed segments"
        for name in STEADY:
            folder = self.server.storage / "collections" / name / "shard0" / "wal"
            logs = sorted(folder.glob("wal-*.log"))
            assert logs, f"{name}: no log in {folder}"
            # Every start begins a file; only a checkpoint removes one.
            assert len(logs) < self.kills, f"{name}: no checkpoint removed a file of {len(logs)}"

    def check(self, why):
        self.keeper.settle(why)
        for name in STEADY:
            mine = [w for w in self.writers if w.collection == name]
            check_everything(self.server, name, mine, why)
        self.states = {(w.collection, w.number): w.state for w in self.writers}
        self.keeper_state = self.keeper.state
        self.sealed |= self.server.sealed_segments()


def test_kill_9_at_random_instants_loses_nothing_that_was_acknowledged(new_server, seed):
    """Field reports D3, D10, D13: a crash after an optimization lost points, left index entries without
    points, or half of an operation."""
    rng, kills = random.Random(seed), 0
    while kills < KILLS:
        load = Load(new_server().start())
        begin = time.monotonic()
        while load.kills < KILLS_PER_DATA_SET and kills + load.kills < KILLS:
            why = f"seed {seed}, kill {kills + load.kills}"
            load.kill(rng)
            if load.kills % RECOVERIES_PER_KILL == 3:
                load.kill_recovery(rng)
            load.server.start()
            load.check(why)
        code, _ = load.server.stop(within=10)
        assert code == 0
        load.server.start()
        load.check(f"seed {seed}, after a graceful stop")
        print(
            f"{load.kills} kills in {time.monotonic() - begin:.0f} s, "
            f"{load.acknowledged} acknowledged operations, {len(load.sealed)} sealed segments seen"
        )
        load.prove_something()
        load.server.kill()
        kills += load.kills


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
    writers.create(server, COLLECTION, size=384, **SETTINGS)
    writers.bulk(server, COLLECTION, range(600), words.rows)
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
    writers.create(server, COLLECTION, size=384, **SETTINGS)
    writers.bulk(server, COLLECTION, range(2500), words.rows)
    server.kill()
    server.start()
    info = server.wait_until_idle(COLLECTION, within=120)
    assert info["points_count"] == 2500
    threshold_rows = 200 * 1024 // (384 * 4)
    assert info["indexed_vectors_count"] >= 2500 - threshold_rows
