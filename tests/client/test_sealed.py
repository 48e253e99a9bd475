"""Sealed segments from outside: what is moved into immutable files stays what it was.

Segments of 64 rows, so that thousands of changes go through dozens of them.
"""

import pytest

SIZE = 16
COUNT = 1000


def vector(i, version):
    return [float(i), float(version), *(float((i * k) % 11) for k in range(SIZE - 2))]


@pytest.fixture
def collection(new_server):
    """A server, the path of a collection of small segments, and the function that upserts into it."""
    server = new_server().start()
    body = {
        "vectors": {"size": SIZE, "distance": "Euclid"},
        "optimizers_config": {"indexing_threshold": 1, "max_segment_size": 4},
    }
    server.call("PUT", "/collections/s", body).result
    index = {"field_name": "version", "field_schema": "integer"}
    server.call("PUT", "/collections/s/index?wait=true", index).result

    def upsert(ids, version):
        points = [
            {"id": i, "vector": vector(i, version), "payload": {"version": version}} for i in ids
        ]
        server.call("PUT", "/collections/s/points?wait=false", {"points": points}).result

    return server, "/collections/s", upsert


def sealed(server):
    return server.sealed_segments()


def check(server, path, versions):
    """Every point holds its own vector and payload; counts, filters and searches agree."""
    found = {p["id"]: (p["vector"], p["payload"]) for p in server.scroll_all("s", page=2000)}
    assert found == {i: (vector(i, v), {"version": v}) for i, v in versions.items()}
    assert server.call("GET", path).result["points_count"] == len(versions)
    for version in {0, *versions.values()}:
        filter_ = {"must": [{"key": "version", "match": {"value": version}}]}
        body = {"exact": True, "filter": filter_}
        count = server.call("POST", f"{path}/points/count", body).result["count"]
        assert count == sum(v == version for v in versions.values()), version
    for i in list(versions)[::90]:
        query = {"query": vector(i, versions[i]), "limit": 1}
        hit = server.call("POST", f"{path}/points/query", query).result["points"][0]
        assert (hit["id"], hit["score"]) == (i, 0)


def test_overwrites_and_deletions_around_sealing_leave_each_point_its_own(collection):
    """Field reports D18, D20: after an optimization points held another's vector, and deleted ones
    were found again."""
    server, path, upsert = collection
    for begin in range(0, COUNT, 100):
        upsert(range(begin, begin + 100), 1)
    versions = dict.fromkeys(range(COUNT), 1)
    server.wait_until_idle("s", within=120)
    assert len(sealed(server)) >= 10
    check(server, path, versions)
    # Overwritten after they were sealed, and sealed again.
    upsert([3, 500, 999], 2)
    upsert(range(200, 280), 3)
    versions |= {3: 2, 500: 2, 999: 2} | dict.fromkeys(range(200, 280), 3)
    server.wait_until_idle("s", within=120)
    check(server, path, versions)
    gone = range(0, COUNT, 2)
    server.call("POST", f"{path}/points/delete?wait=false", {"points": list(gone)}).result
    for i in gone:
        del versions[i]
    check(server, path, versions)
    for end in ("kill", "stop"):
        server.kill() if end == "kill" else server.stop(within=10)
        server.start()
        check(server, path, versions)
        asked = server.call("POST", f"{path}/points", {"ids": list(gone)}).result
        assert asked == []


def test_settings_changed_while_segments_are_sealed_lose_no_change_of_a_point(collection):
    """Field reports D2, L11: changing the settings cancelled an optimization, and what had been
    overwritten and deleted meanwhile was there again."""
    server, path, upsert = collection
    versions = {}
    for turn in range(12):
        ids = range(turn * 100, turn * 100 + 100)
        upsert(ids, 1)
        versions |= dict.fromkeys(ids, 1)
        change = {"optimizers_config": {"indexing_threshold": turn % 3 + 1, "flush_interval_sec": turn}}
        assert server.call("PATCH", path, change).result is True
        if turn:
            again = range(turn * 100 - 60, turn * 100 + 20)
            upsert(again, turn + 10)
            versions |= dict.fromkeys(again, turn + 10)
            gone = list(range(turn * 100 - 100, turn * 100 - 70))
            server.call("POST", f"{path}/points/delete?wait=false", {"points": gone}).result
            for i in gone:
                del versions[i]
    check(server, path, versions)
    server.wait_until_idle("s", within=120)
    check(server, path, versions)
    server.kill()
    server.start()
    check(server, path, versions)
