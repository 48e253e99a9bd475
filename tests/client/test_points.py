"""Points: every way to write them, read them and delete them."""

import uuid

import numpy as np
import pytest
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

UUID = "5c56c793-69f3-4fbf-87e6-c4bf54c28c26"
LARGEST = 2**64 - 1


@pytest.fixture
def points(client, name):
    """A collection of four dimensions, metric Dot, so that vectors come back as they were sent."""
    params = models.VectorParams(size=4, distance=models.Distance.DOT)
    client.create_collection(name, vectors_config=params)
    return name


def struct(point_id, *vector, **payload):
    return models.PointStruct(id=point_id, vector=list(vector), payload=payload or None)


def by_id(client, collection, *ids):
    found = client.retrieve(collection, ids, with_payload=True, with_vectors=True)
    return {p.id: (p.vector, p.payload) for p in found}


def test_points_are_stored_and_returned_as_they_were_sent(client, points):
    done = client.upsert(points, [struct(1, 1, 2, 3, 4, city="Bern"), struct(2, 0.1, -2e-7, 3e7, 0)])
    assert done.status == models.UpdateStatus.COMPLETED
    assert by_id(client, points, 1, 2, 3) == {
        1: ([1, 2, 3, 4], {"city": "Bern"}),
        2: ([0.1, -2e-7, 3e7, 0], {}),
    }


def test_without_waiting_a_write_is_acknowledged_and_at_once_visible(client, points):
    done = client.upsert(points, [struct(7, 1, 2, 3, 4)], wait=False)
    assert done.status == models.UpdateStatus.ACKNOWLEDGED
    assert client.count(points).count == 1
    assert [p.id for p in client.query_points(points, query=[1, 1, 1, 1]).points] == [7]


def test_a_batch_is_the_same_as_a_list(server, client, points):
    batch = models.Batch(
        ids=[1, UUID, 3],
        vectors=[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
        payloads=[{"n": 1}, {}, {"n": 3}],
    )
    client.upsert(points, batch)
    nothing = {"batch": {"ids": [4], "vectors": [[0, 0, 0, 1]], "payloads": [None]}}
    server.call("PUT", f"/collections/{points}/points?wait=true", nothing).result
    assert by_id(client, points, 1, UUID, 3, 4) == {
        4: ([0, 0, 0, 1], {}),
        1: ([1, 0, 0, 0], {"n": 1}),
        UUID: ([0, 1, 0, 0], {}),
        3: ([0, 0, 1, 0], {"n": 3}),
    }


def test_numbers_up_to_the_largest_and_uuids_are_ids(client, points):
    ids = [0, 1, LARGEST, UUID, str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))]
    client.upsert(points, [struct(i, n, 0, 0, 0) for n, i in enumerate(ids)])
    assert {p.id for p in client.retrieve(points, ids)} == set(ids)
    listed, offset = client.scroll(points, limit=10)
    assert offset is None
    assert [p.id for p in listed] == [0, 1, LARGEST, *sorted(i for i in ids if isinstance(i, str))]


def test_uuids_are_the_same_in_every_spelling(server, client, points):
    for spelling in (UUID, UUID.upper(), UUID.replace("-", ""), f"urn:uuid:{UUID}"):
        body = {"points": [{"id": spelling, "vector": [1, 2, 3, 4]}]}
        server.call("PUT", f"/collections/{points}/points?wait=true", body).result
    assert client.count(points).count == 1
    assert client.retrieve(points, [UUID])[0].id == UUID


def test_upload_points_and_upload_collection_bring_everything(client, name, words):
    params = models.VectorParams(size=384, distance=models.Distance.COSINE)
    client.create_collection(name, vectors_config=params)
    rows, payloads = words.rows, words.payloads
    made = (models.PointStruct(id=i, vector=rows[i], payload=payloads[i]) for i in range(150))
    client.upload_points(name, made, batch_size=37, wait=True)
    client.upload_collection(
        name, rows[150:350], payloads[150:350], ids=range(150, 350), batch_size=64, wait=True
    )
    assert client.count(name).count == 350
    for point in client.retrieve(name, list(range(0, 350, 7)), with_vectors=True):
        assert point.payload == payloads[point.id]
        assert np.abs(np.array(point.vector) - rows[point.id]).max() < 1e-6


def test_cosine_vectors_come_back_with_length_one(client, name):
    params = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection(name, vectors_config=params)
    client.upsert(name, [models.PointStruct(id=1, vector=[3, 4])])
    vector = client.retrieve(name, [1], with_vectors=True)[0].vector
    assert vector == pytest.approx([0.6, 0.8], abs=1e-6)


def test_an_upsert_replaces_the_whole_point(client, points):
    client.upsert(points, [struct(1, 1, 0, 0, 0, a=1, b=2)])
    client.upsert(points, [struct(1, 0, 1, 0, 0, c=3)])
    assert by_id(client, points, 1) == {1: ([0, 1, 0, 0], {"c": 3})}
    assert client.count(points).count == 1
    found = client.query_points(points, query=[1, 0, 0, 0]).points
    assert [(p.id, p.score) for p in found] == [(1, 0.0)]


def test_of_equal_ids_in_one_request_the_last_one_counts(client, points):
    """Field reports V9, C31: 150 documents were uploaded under few ids, and few were left."""
    client.upsert(points, [struct(1, 1, 0, 0, 0, a=1), struct(2, 2, 0, 0, 0), struct(1, 3, 0, 0, 0)])
    assert by_id(client, points, 1) == {1: ([3, 0, 0, 0], {})}
    assert client.count(points).count == 2
    assert len(client.scroll(points)[0]) == 2


def test_payload_of_every_json_type_comes_back(client, points):
    payload = {
        "text": "caf\u00e9 \U0001f600 \"quoted\" \\ \n",
        "": "empty key",
        "a.b/c:d e": 1,
        "large": 2**63 - 1,
        "small": -(2**63),
        "float": 1.5e300,
        "tiny": 5e-324,
        "yes": True,
        "none": None,
        "list": [1, "x", [], {}, None, [[2]]],
        "deep": {"a": {"b": [{"c": 1}, {"c": 2}]}},
        "long": "x" * 100_000,
    }
    client.upsert(points, [models.PointStruct(id=1, vector=[1, 0, 0, 0], payload=payload)])
    assert client.retrieve(points, [1])[0].payload == payload


def test_one_point_is_found_by_its_path(server, client, points):
    client.upsert(points, [struct(5, 1, 0, 0, 0, a=1), struct(UUID, 2, 0, 0, 0)])
    found = server.call("GET", f"/collections/{points}/points/5").result
    assert (found["id"], found["payload"], found["vector"]) == (5, {"a": 1}, [1, 0, 0, 0])
    assert server.call("GET", f"/collections/{points}/points/{UUID}").result["id"] == UUID
    missing = server.call("GET", f"/collections/{points}/points/6")
    assert missing.status == 404 and "6" in missing.error


def test_payload_selectors_choose_what_comes_back(client, points):
    client.upsert(points, [struct(1, 1, 0, 0, 0, a=1, b={"c": 2, "d": 3}, e=4)])

    def selected(with_payload):
        return client.retrieve(points, [1], with_payload=with_payload)[0].payload

    assert selected(True) == {"a": 1, "b": {"c": 2, "d": 3}, "e": 4}
    assert not selected(False)
    assert selected(["a", "b.c"]) == {"a": 1, "b": {"c": 2}}
    assert selected(models.PayloadSelectorInclude(include=["e"])) == {"e": 4}
    assert selected(models.PayloadSelectorExclude(exclude=["a", "b.c"])) == {"b": {"d": 3}, "e": 4}
    hit = client.query_points(points, query=[1, 0, 0, 0], with_payload=["a"]).points[0]
    assert hit.payload == {"a": 1}
    record = client.scroll(points, with_payload=["e"])[0][0]
    assert record.payload == {"e": 4}


def test_reads_return_what_they_return_by_default(client, server, points):
    client.upsert(points, [struct(1, 1, 0, 0, 0, a=1)])
    base = f"/collections/{points}/points"
    hit = server.call("POST", f"{base}/query", {"query": [1, 0, 0, 0]}).result["points"][0]
    assert not hit.get("payload") and not hit.get("vector") and hit["score"] == 1
    record = server.call("POST", f"{base}/scroll", {}).result["points"][0]
    assert record["payload"] == {"a": 1} and not record.get("vector")
    record = server.call("POST", base, {"ids": [1]}).result[0]
    assert record["payload"] == {"a": 1} and not record.get("vector")


def test_scroll_walks_all_points_once_in_order(client, points):
    ids = [*range(0, 180, 3), *(str(uuid.UUID(int=n << 64)) for n in range(20))]
    client.upsert(points, [struct(i, n, 0, 0, 0, n=n) for n, i in enumerate(ids)])
    for page in (1, 7, 100, 1000):
        seen, offset = [], None
        while True:
            records, offset = client.scroll(points, limit=page, offset=offset)
            assert len(records) == page or offset is None
            seen += [r.id for r in records]
            if offset is None:
                break
        assert seen == ids
    even = models.Filter(must=[models.FieldCondition(key="n", range=models.Range(gte=50, lt=70))])
    records, offset = client.scroll(points, scroll_filter=even, limit=15)
    assert [r.payload["n"] for r in records] == [*range(50, 65)]
    records, offset = client.scroll(points, scroll_filter=even, limit=15, offset=offset)
    assert [r.payload["n"] for r in records] == [*range(65, 70)] and offset is None


def test_set_payload_merges_keys_at_the_top_or_under_a_path(client, points):
    client.upsert(points, [struct(1, 1, 0, 0, 0, a=1, b={"c": 2}), struct(2, 2, 0, 0, 0, a=5)])
    client.set_payload(points, {"a": 9, "new": [1]}, points=[1, 99])
    assert by_id(client, points, 1) == {1: ([1, 0, 0, 0], {"a": 9, "new": [1], "b": {"c": 2}})}
    client.set_payload(points, {"d": 3}, points=[1], key="b")
    client.set_payload(points, {"x": 1}, points=[2], key="made.here")
    chosen = models.Filter(must=[models.FieldCondition(key="a", match=models.MatchValue(value=5))])
    client.set_payload(points, {"chosen": True}, points=chosen)
    assert by_id(client, points, 1, 2) == {
        1: ([1, 0, 0, 0], {"a": 9, "new": [1], "b": {"c": 2, "d": 3}}),
        2: ([2, 0, 0, 0], {"a": 5, "made": {"here": {"x": 1}}, "chosen": True}),
    }
    assert client.count(points).count == 2


def test_points_are_deleted_by_id_and_by_filter(client, points):
    client.upsert(points, [struct(n, n, 0, 0, 0, group=n % 3) for n in range(30)])
    client.delete(points, [0, 1, 777])
    assert client.count(points).count == 28
    third = models.FieldCondition(key="group", match=models.MatchValue(value=2))
    client.delete(points, models.FilterSelector(filter=models.Filter(must=[third])))
    assert client.count(points).count == 18
    left = [n for n in range(2, 30) if n % 3 != 2]
    assert [p.id for p in client.scroll(points, limit=100)[0]] == left
    assert client.retrieve(points, [0, 1, 2]) == []
    hits = client.query_points(points, query=[1, 0, 0, 0], limit=100).points
    assert [p.id for p in hits] == sorted(left, reverse=True)
    client.upsert(points, [struct(2, 50, 0, 0, 0)])
    assert client.query_points(points, query=[1, 0, 0, 0], limit=1).points[0].id == 2


def test_a_filtered_delete_takes_what_matches_now_and_not_later(client, points):
    client.upsert(points, [struct(1, 1, 0, 0, 0, num=5)])
    nine = models.FieldCondition(key="num", match=models.MatchValue(value=9))
    client.delete(points, models.FilterSelector(filter=models.Filter(must=[nine])))
    client.set_payload(points, {"num": 9}, points=[1])
    assert by_id(client, points, 1) == {1: ([1, 0, 0, 0], {"num": 9})}


def test_counts_are_exact_at_every_moment(client, points):
    for n in range(40):
        client.upsert(points, [struct(i, i, n, 0, 0) for i in range(n % 20, n % 20 + 5)], wait=False)
        client.delete(points, [n % 7], wait=False)
        known = {p.id for p in client.scroll(points, limit=100)[0]}
        assert client.count(points, exact=True).count == len(known)
        assert client.count(points, exact=False).count == len(known)
        assert client.get_collection(points).points_count == len(known)


def test_reading_from_a_collection_that_is_not_there_is_not_found(client):
    with pytest.raises(UnexpectedResponse) as refusal:
        client.count("never-made")
    assert refusal.value.status_code == 404
    assert "Not found: Collection `never-made` doesn't exist!" in refusal.value.content.decode()
