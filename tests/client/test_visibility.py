"""What is acknowledged is found by the very next search, whatever the server is doing."""

import time

import numpy as np
import pytest
from qdrant_client import models

import recall


@pytest.fixture
def loading(server, client, name, words):
    """A collection that is being filled and indexed in the background; ids from 100,000 are free."""
    client.create_collection(
        name,
        vectors_config=models.VectorParams(size=384, distance=models.Distance.COSINE),
        optimizers_config=models.OptimizersConfigDiff(indexing_threshold=100),
    )
    client.create_payload_index(name, "mark", field_schema="integer", wait=True)
    loader = recall.Loader(server, name, words.rows[:9000], batch=250)
    loader.start()
    yield name, loader
    loader.join(timeout=120)
    assert loader.failure is None, loader.failure


def found(client, name, vector, limit=3, **more):
    return [p.id for p in client.query_points(name, vector, limit=limit, **more).points]


def marked(mark):
    condition = models.FieldCondition(key="mark", match=models.MatchValue(value=mark))
    return {"query_filter": models.Filter(must=[condition])}


def test_an_acknowledged_point_is_found_by_the_next_search(client, loading, words):
    name, loader = loading
    random = np.random.default_rng(5)
    turns = 0
    while loader.is_alive() or turns < 100:
        point_id, wait = 100_000 + turns, turns % 2 == 0
        first, second = random.normal(size=(2, 384))
        client.upsert(
            name,
            [models.PointStruct(id=point_id, vector=first.tolist(), payload={"mark": turns})],
            wait=wait,
        )
        assert found(client, name, first)[0] == point_id
        assert found(client, name, first, **marked(turns)) == [point_id]
        # Overwritten: the new vector is found, the old one is gone.
        client.upsert(
            name,
            [models.PointStruct(id=point_id, vector=second.tolist(), payload={"mark": -turns - 1})],
            wait=wait,
        )
        assert found(client, name, second)[0] == point_id
        assert found(client, name, first, **marked(turns)) == []
        best = client.query_points(name, first, limit=1).points[0]
        assert best.score < 0.9, f"{best.id} still answers with an old vector"
        # A payload change is seen by the next filter.
        client.set_payload(name, {"mark": 1_000_000 + turns}, points=[point_id], wait=wait)
        assert found(client, name, second, **marked(1_000_000 + turns)) == [point_id]
        assert found(client, name, second, **marked(-turns - 1)) == []
        # Deleted: no read shows it.
        client.delete(name, [point_id], wait=wait)
        assert point_id not in found(client, name, second, limit=10)
        assert found(client, name, second, **marked(1_000_000 + turns)) == []
        assert client.retrieve(name, [point_id]) == []
        turns += 1
        if turns >= 150:
            break
    print(f"{turns} turns")


def test_a_read_sees_each_write_whole_and_once_while_points_move(server, client, loading):
    """Field reports C16, C18: counts doubled and filtered searches lost points during indexing."""
    name, loader = loading
    size, group = 40, 200_000
    vector = np.random.default_rng(6).normal(size=384).tolist()

    def write(version):
        batch = models.Batch(
            ids=list(range(group, group + size)),
            vectors=[vector] * size,
            payloads=[{"mark": -version} for _ in range(size)],
        )
        client.upsert(name, batch, wait=False)

    write(1)
    version = 1
    while loader.is_alive() and version < 200:
        version += 1
        write(version)
        hits = client.query_points(name, vector, limit=size + 5, with_payload=True).points
        mine = [h for h in hits if h.id >= group]
        assert sorted(h.id for h in mine) == list(range(group, group + size))
        assert {h.payload["mark"] for h in mine} == {-version}
        assert len(found(client, name, vector, limit=100, **marked(-version))) == size
        lower, count = loader.acknowledged, client.count(name).count
        assert lower + size <= count <= loader.sent + size


def test_readers_are_served_while_writers_wait(server, client, loading, words):
    """Field report L12: looking at a collection took seconds while it was being optimized."""
    name, loader = loading
    slowest = 0.0
    while loader.is_alive():
        begin = time.monotonic()
        client.get_collection(name)
        server.optimizations(name)
        slowest = max(slowest, time.monotonic() - begin)
    print(f"slowest pair of info and optimizations: {slowest * 1000:.0f} ms")
    assert slowest < 2.0
