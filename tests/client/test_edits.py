"""Parts of points changed: payload, vectors; batches; settings by PATCH; aliases. Over both protocols."""

import grpc
import pytest
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

SIZE = 4


@pytest.fixture(params=["rest", "grpc"])
def wire(request, client, grpc_client):
    """The client of one protocol."""
    return client if request.param == "rest" else grpc_client


@pytest.fixture
def filled(client, name):
    """Twelve points with two named vectors and a payload each."""
    params = models.VectorParams(size=SIZE, distance=models.Distance.EUCLID)
    client.create_collection(name, vectors_config={"a": params, "b": params})
    points = [
        models.PointStruct(
            id=n,
            vector={"a": [n, 0, 0, 0], "b": [0, n, 0, 0]},
            payload={"n": n, "kind": "even" if n % 2 == 0 else "odd", "deep": {"x": n, "y": n}},
        )
        for n in range(12)
    ]
    client.upsert(name, points, wait=True)
    return name


def stored(client, name):
    page, _ = client.scroll(name, limit=100, with_payload=True, with_vectors=True)
    return {point.id: point for point in page}


ODD = models.Filter(must=[models.FieldCondition(key="kind", match=models.MatchValue(value="odd"))])


def test_payloads_are_replaced_reduced_and_emptied(wire, filled):
    wire.overwrite_payload(filled, payload={"only": 1}, points=[1, 2, 99], wait=True)
    wire.delete_payload(filled, keys=["n", "deep.x"], points=[3, 4], wait=True)
    wire.clear_payload(filled, points_selector=[5], wait=True)
    points = stored(wire, filled)
    assert points[1].payload == points[2].payload == {"only": 1}
    assert points[3].payload == {"kind": "odd", "deep": {"y": 3}}
    assert points[5].payload == {}
    assert points[6].payload == {"n": 6, "kind": "even", "deep": {"x": 6, "y": 6}}
    # By filter, decided by what the payloads are now.
    wire.clear_payload(filled, points_selector=models.FilterSelector(filter=ODD), wait=True)
    points = stored(wire, filled)
    emptied = [n for n, point in points.items() if point.payload == {}]
    assert emptied == [3, 5, 7, 9, 11]
    assert all(points[n].vector["a"] == [n, 0, 0, 0] for n in points)


def test_vectors_are_replaced_and_taken_away(wire, filled):
    wire.update_vectors(
        filled,
        points=[
            models.PointVectors(id=1, vector={"a": [50, 0, 0, 0]}),
            models.PointVectors(id=2, vector={"a": [60, 0, 0, 0], "b": [0, 60, 0, 0]}),
        ],
        wait=True,
    )
    wire.delete_vectors(filled, vectors=["b"], points=[3, 4], wait=True)
    points = stored(wire, filled)
    assert points[1].vector == {"a": [50, 0, 0, 0], "b": [0, 1, 0, 0]}
    assert points[2].vector == {"a": [60, 0, 0, 0], "b": [0, 60, 0, 0]}
    assert points[3].vector == {"a": [3, 0, 0, 0]}
    assert points[1].payload["n"] == 1, "the payload stays"
    found = wire.query_points(filled, query=[55.1, 0, 0, 0], using="a", limit=2).points
    assert [point.id for point in found] == [2, 1]
    found = wire.query_points(filled, query=[0, 3, 0, 0], using="b", limit=12).points
    assert sorted(point.id for point in found) == [0, 1, 2, *range(5, 12)]
    assert wire.count(filled).count == 12


def refused(call):
    """Code and text of a refusal, as HTTP has them."""
    codes = {grpc.StatusCode.NOT_FOUND: 404, grpc.StatusCode.INVALID_ARGUMENT: 400}
    try:
        call()
    except UnexpectedResponse as error:
        return error.status_code, error.structured()["status"]["error"]
    except grpc.RpcError as error:
        return codes[error.code()], error.details()
    raise AssertionError("the call was accepted")


def test_new_vectors_of_a_point_that_is_not_there_change_nothing(wire, filled):
    before = stored(wire, filled)
    vectors = [
        models.PointVectors(id=1, vector={"a": [9, 9, 9, 9]}),
        models.PointVectors(id=77, vector={"a": [9, 9, 9, 9]}),
    ]
    code, text = refused(lambda: wire.update_vectors(filled, points=vectors, wait=True))
    assert code == 404 and "77" in text
    short = [models.PointVectors(id=1, vector={"a": [9, 9]})]
    code, text = refused(lambda: wire.update_vectors(filled, points=short, wait=True))
    assert code == 400 and "expected dim: 4, got 2" in text
    code, text = refused(lambda: wire.delete_vectors(filled, vectors=["c"], points=[1]))
    assert code == 400 and "Not existing vector name error: c" in text
    assert stored(wire, filled) == before


def test_a_batch_applies_its_operations_in_order(wire, filled):
    operations = [
        models.UpsertOperation(
            upsert=models.PointsList(
                points=[models.PointStruct(id=50, vector={"a": [1, 1, 1, 1]}, payload={"p": 1})]
            )
        ),
        models.SetPayloadOperation(set_payload=models.SetPayload(payload={"q": 2}, points=[50])),
        models.OverwritePayloadOperation(
            overwrite_payload=models.SetPayload(payload={"r": 3}, points=[1])
        ),
        models.DeletePayloadOperation(
            delete_payload=models.DeletePayload(keys=["kind"], points=[2])
        ),
        models.ClearPayloadOperation(clear_payload=models.PointIdsList(points=[3])),
        models.UpdateVectorsOperation(
            update_vectors=models.UpdateVectors(
                points=[models.PointVectors(id=4, vector={"b": [7, 7, 7, 7]})]
            )
        ),
        models.DeleteVectorsOperation(
            delete_vectors=models.DeleteVectors(vector=["a"], points=[5])
        ),
        models.DeleteOperation(delete=models.PointIdsList(points=[6])),
    ]
    results = wire.batch_update_points(filled, update_operations=operations, wait=True)
    assert [result.status for result in results] == [models.UpdateStatus.COMPLETED] * 8
    places = [result.operation_id for result in results]
    assert places == sorted(set(places))
    points = stored(wire, filled)
    assert points[50].payload == {"p": 1, "q": 2}
    assert points[1].payload == {"r": 3}
    assert "kind" not in points[2].payload
    assert points[3].payload == {}
    assert points[4].vector["b"] == [7, 7, 7, 7]
    assert list(points[5].vector) == ["b"]
    assert 6 not in points


def test_an_unreadable_operation_of_a_batch_applies_none(server, client, filled):
    body = {"operations": [{"delete": {"points": [1]}}, {"delete": {"points": [-1]}}]}
    answer = server.call("POST", f"/collections/{filled}/points/batch?wait=true", body)
    assert answer.status == 400
    assert "operations[1].delete" in answer.error
    assert client.count(filled).count == 12


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"upsert": {"points": [{"id": 51, "vector": {"a": [1, 2, 3]}}]}}, "expected dim: 4, got 3"),
        ({"upsert": {"points": [{"id": 51, "vector": {"c": [1, 2, 3, 4]}}]}}, "c"),
        ({"update_vectors": {"points": [{"id": 1, "vector": {"a": [1]}}]}}, "expected dim: 4, got 1"),
        ({"delete_vectors": {"points": [1], "vector": ["c"]}}, "c"),
        ({"set_payload": {"payload": {}, "points": [1], "key": "a[["}}, "a[["),
        ({"delete_payload": {"keys": ["a[["], "points": [1]}}, "a[["),
    ],
)
@pytest.mark.parametrize("wait", ["true", "false"])
def test_a_wrong_operation_of_a_batch_applies_none(server, client, filled, wrong, text, wait):
    """Field report V3: the operations before the wrong one stayed."""
    before = stored(client, filled)
    right = {"upsert": {"points": [{"id": 50, "vector": {"a": [1, 1, 1, 1]}}]}}
    body = {"operations": [right, {"delete": {"points": [1]}}, wrong]}
    answer = server.call("POST", f"/collections/{filled}/points/batch?wait={wait}", body)
    assert answer.status == 400 and text in answer.error
    assert stored(client, filled) == before


def test_batches_of_queries_and_the_older_search_answer_as_single_queries(server, wire, filled):
    queries = [[n + 0.1, 0, 0, 0] for n in (2, 5, 9)]
    single = [wire.query_points(filled, query=q, using="a", limit=3).points for q in queries]
    requests = [
        models.QueryRequest(query=q, using="a", limit=3, with_payload=True) for q in queries
    ]
    batch = wire.query_batch_points(filled, requests=requests)
    assert [answer.points for answer in batch] == single
    body = {"vector": {"name": "a", "vector": queries[0]}, "limit": 3}
    older = server.call("POST", f"/collections/{filled}/points/search", body).result
    assert [point["id"] for point in older] == [point.id for point in single[0]]
    bodies = {"searches": [body, {**body, "limit": 1}]}
    both = server.call("POST", f"/collections/{filled}/points/search/batch", bodies)
    assert [len(found) for found in both.result] == [3, 1]
    wrong = {"searches": [body, {**body, "limit": 0}]}
    answer = server.call("POST", f"/collections/{filled}/points/search/batch", wrong)
    assert answer.status == 422 and "searches[1]" in answer.error


def test_settings_change_one_by_one_and_survive(wire, filled):
    before = wire.get_collection(filled).config
    wire.update_collection(
        filled,
        optimizers_config=models.OptimizersConfigDiff(indexing_threshold=77),
        hnsw_config=models.HnswConfigDiff(ef_construct=55),
        vectors_config={"a": models.VectorParamsDiff(hnsw_config=models.HnswConfigDiff(m=9))},
    )
    after = wire.get_collection(filled).config
    assert after.optimizer_config.indexing_threshold == 77
    assert after.optimizer_config.flush_interval_sec == before.optimizer_config.flush_interval_sec
    assert (after.hnsw_config.ef_construct, after.hnsw_config.m) == (55, before.hnsw_config.m)
    assert after.params.vectors["a"].hnsw_config.m == 9
    assert wire.count(filled).count == 12
    diff = {"b2": models.VectorParamsDiff(on_disk=True)}
    code, text = refused(lambda: wire.update_collection(filled, vectors_config=diff))
    assert code == 400 and "b2" in text


def test_aliases_lead_to_collections_and_move_at_once(wire, client, filled):
    other, alias = f"{filled}-other", f"{filled}-alias"
    client.create_collection(other, models.VectorParams(size=2, distance=models.Distance.DOT))
    create = models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=filled, alias_name=alias)
    )
    assert wire.update_collection_aliases([create])
    assert wire.count(alias).count == 12
    listed = [(a.alias_name, a.collection_name) for a in wire.get_aliases().aliases]
    assert (alias, filled) in listed
    assert [a.alias_name for a in wire.get_collection_aliases(filled).aliases] == [alias]
    # Both or none: a swap to a collection that is not there leaves all as it was.
    bad = models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name="nowhere", alias_name=alias)
    )
    gone = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
    code, text = refused(lambda: wire.update_collection_aliases([gone, bad]))
    assert code == 404 and "nowhere" in text
    assert wire.count(alias).count == 12
    for name in ("..", "a/b", "", "x" * 256, "a\0b"):
        # Field report S1: a name is never a path.
        make = models.CreateAlias(collection_name=filled, alias_name=name)
        operation = models.CreateAliasOperation(create_alias=make)
        assert refused(lambda: wire.update_collection_aliases([operation]))[0] in (400, 422)
    move = models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=other, alias_name=alias)
    )
    wire.update_collection_aliases([gone, move])
    assert wire.count(alias).count == 0
    client.delete_collection(other)
    assert alias not in [a.alias_name for a in wire.get_aliases().aliases]
