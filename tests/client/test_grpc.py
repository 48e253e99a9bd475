"""The same calls over REST and gRPC give the same answers, field by field."""

import math
import uuid
from datetime import datetime, timezone

import grpc
import numpy as np
import pytest
from qdrant_client import grpc as wire
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

import packed

# The gRPC code of each HTTP code.
CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    409: grpc.StatusCode.ALREADY_EXISTS,
}

SOME_UUID = str(uuid.UUID(int=0x550E8400E29B41D4A716446655440000))


def settled(answer):
    """An answer as plain data: what an unset field and an empty one mean is the same in gRPC."""
    if hasattr(answer, "model_dump"):
        answer = answer.model_dump(mode="json")
    if isinstance(answer, dict):
        answer = {key: settled(value) for key, value in answer.items()}
        return {key: value for key, value in answer.items() if value not in (None, {}, [])}
    if isinstance(answer, (list, tuple)):
        return [settled(one) for one in answer]
    if isinstance(answer, float):
        # Scores and vectors are 32-bit floats: REST writes their shortest form.
        return float(np.float32(answer))
    return answer


def same(rest, over_grpc, call):
    """What both say to `call`, which must be the same."""
    first, second = settled(call(rest)), settled(call(over_grpc))
    assert first == second
    return first


def refusals(rest, over_grpc, call):
    """The text with which both refuse `call`; codes must match, texts up to the word JSON."""
    with pytest.raises(UnexpectedResponse) as over_rest:
        call(rest)
    with pytest.raises(grpc.RpcError) as refused:
        call(over_grpc)
    code = over_rest.value.status_code
    text = over_rest.value.structured()["status"]["error"]
    assert refused.value.code() == CODES[code], text
    for place in ("JSON body", "query parameters", "path parameters"):
        text = text.replace(f"error in {place}", "error in body")
    assert refused.value.details() == text
    return text


@pytest.fixture(scope="module")
def filled(shared_clients, words):
    """A collection with 300 points, half of them written over each protocol; no test here changes
    what it holds."""
    client, grpc_client = shared_clients
    name = "both-protocols"
    client.create_collection(
        name,
        vectors_config={
            "text": models.VectorParams(size=words.rows.shape[1], distance=models.Distance.COSINE),
            "small": models.VectorParams(size=2, distance=models.Distance.EUCLID),
        },
    )
    points = []
    for row in range(300):
        payload = dict(words.payloads[row]) | {
            "row": row,
            "double": row / 3,
            "at": f"2024-02-{row % 28 + 1:02}T00:00:00+02:00",
            "parts": [{"n": row % 3, "m": 0}, {"n": row % 4, "m": 1}][: row % 3],
            "nested": {"list": [row, {"deep": [None, True, "x"]}], "empty": {}},
        }
        vector = {"text": words.rows[row].tolist()}
        if row % 3:
            vector["small"] = [float(row), -0.5]
        id = str(uuid.UUID(int=row)) if row % 5 == 0 else row
        points.append(models.PointStruct(id=id, vector=vector, payload=payload))
    client.upsert(name, points[::2], wait=True)
    grpc_client.upsert(name, points[1::2], wait=True)
    yield name
    client.delete_collection(name)


def test_collections_are_made_shown_and_removed_alike(client, grpc_client, name):
    config = dict(
        vectors_config={
            "a": models.VectorParams(
                size=3,
                distance=models.Distance.MANHATTAN,
                on_disk=True,
                hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
            ),
            "b": models.VectorParams(size=4, distance=models.Distance.DOT),
        },
        hnsw_config=models.HnswConfigDiff(m=0, payload_m=24, ef_construct=50, on_disk=False),
        optimizers_config=models.OptimizersConfigDiff(
            deleted_threshold=0.5, indexing_threshold=77, max_optimization_threads=2
        ),
        wal_config=models.WalConfigDiff(wal_capacity_mb=4),
        on_disk_payload=False,
        shard_number=1,
        metadata={"owner": {"id": 7, "share": 0.5}},
    )
    shown = []
    for maker in (client, grpc_client):
        assert maker.create_collection(name, **config) is True
        assert same(client, grpc_client, lambda c: c.collection_exists(name)) is True
        names = same(client, grpc_client, lambda c: c.get_collections())["collections"]
        assert {"name": name} in names
        shown.append(same(client, grpc_client, lambda c: c.get_collection(name)))
        text = refusals(
            client, grpc_client, lambda c: c.create_collection(name, config["vectors_config"])
        )
        assert text == f"Wrong input: Collection `{name}` already exists!"
        assert maker.delete_collection(name) is True
        assert same(client, grpc_client, lambda c: c.delete_collection(name)) is False
    assert shown[0] == shown[1]
    hnsw = shown[0]["config"]["hnsw_config"]
    assert (hnsw["m"], hnsw["payload_m"], hnsw["on_disk"]) == (0, 24, False)
    assert shown[0]["config"]["params"]["vectors"]["a"]["hnsw_config"] == {"m": 0, "payload_m": 16}
    assert shown[0]["config"]["metadata"] == {"owner": {"id": 7, "share": 0.5}}
    assert same(client, grpc_client, lambda c: c.collection_exists(name)) is False
    text = refusals(client, grpc_client, lambda c: c.get_collection(name))
    assert text == f"Not found: Collection `{name}` doesn't exist!"


def test_points_come_back_alike_whichever_way_they_came(client, grpc_client, filled):
    ids = [1, 2, str(uuid.UUID(int=5)), str(uuid.UUID(int=10)), 4, 10**15]
    for parts in (
        {},
        {"with_vectors": True},
        {"with_vectors": ["small"], "with_payload": False},
        {"with_payload": ["row", "nested.list"]},
        {"with_payload": models.PayloadSelectorExclude(exclude=["nested"])},
    ):
        found = same(client, grpc_client, lambda c: c.retrieve(filled, ids, **parts))
        assert [point["id"] for point in found] == ids[:-1]
    everything = same(
        client, grpc_client, lambda c: c.scroll(filled, limit=1000, with_vectors=True)
    )
    assert len(everything[0]) == 300
    info = same(client, grpc_client, lambda c: c.get_collection(filled))
    assert info["points_count"] == 300


def test_pages_follow_each_other_across_protocols(client, grpc_client, filled):
    seen, offset, turn = [], None, 0
    while True:
        page, following = (client, grpc_client)[turn % 2].scroll(filled, limit=37, offset=offset)
        other, also = (grpc_client, client)[turn % 2].scroll(filled, limit=37, offset=offset)
        assert settled(page) == settled(other) and following == also
        seen += [point.id for point in page]
        offset, turn = following, turn + 1
        if offset is None:
            break
    assert len(seen) == len(set(map(str, seen))) == 300


def test_queries_find_the_same_points_with_the_same_scores(client, grpc_client, filled, words):
    vector = words.queries[3].tolist()
    for query in (
        dict(query=vector, using="text"),
        dict(query=vector, using="text", limit=3, offset=2, with_payload=True, with_vectors=True),
        dict(query=7, using="text", with_payload=["row"]),
        dict(query=str(uuid.UUID(int=5)), using="text", limit=1000),
        dict(query=[3.0, 1.0], using="small", limit=20),
        dict(query=vector, using="text", score_threshold=0.2, limit=50),
        dict(
            query=vector,
            using="text",
            search_params=models.SearchParams(hnsw_ef=17, exact=True),
            query_filter=models.Filter(
                must=[models.FieldCondition(key="row", range=models.Range(gte=10, lt=200.5))]
            ),
        ),
        dict(limit=5, offset=3),
    ):
        found = same(client, grpc_client, lambda c: c.query_points(filled, **query))["points"]
        assert found


def conditions():
    key = lambda **test: models.FieldCondition(key="row", **test)  # noqa: E731
    return {
        "value": key(match=models.MatchValue(value=7)),
        "any": key(match=models.MatchAny(any=[1, 2, 299, 1000])),
        "any of none": key(match=models.MatchAny(any=[])),
        "except": key(match=models.MatchExcept(**{"except": [1, 2]})),
        "range": key(range=models.Range(gt=10, lte=20)),
        "datetime range": models.FieldCondition(
            key="at", range=models.DatetimeRange(gte=datetime(2024, 2, 9, 22), lt="2024-02-20T00:00:00Z")
        ),
        "values_count": models.FieldCondition(key="parts", values_count=models.ValuesCount(gte=1, lt=2)),
        "nested": models.NestedCondition(nested=models.Nested(
            key="parts",
            filter=models.Filter(
                must=[models.FieldCondition(key="n", match=models.MatchValue(value=1))],
                must_not=[models.FieldCondition(key="m", match=models.MatchValue(value=0))],
            ),
        )),
        "has_vector": models.HasVectorCondition(has_vector="small"),
        "is_null": models.IsNullCondition(is_null=models.PayloadField(key="nested.list[].deep")),
        "is_empty": models.IsEmptyCondition(is_empty=models.PayloadField(key="nested.empty")),
        "has_id": models.HasIdCondition(has_id=[1, 2, str(uuid.UUID(int=5)), 10**15]),
        "nested filter": models.Filter(
            should=[key(match=models.MatchValue(value=n)) for n in (3, 4)],
            must_not=[key(match=models.MatchValue(value=4))],
        ),
        "min_should": models.Filter(
            min_should=models.MinShould(
                conditions=[key(range=models.Range(gt=n)) for n in (100, 200, 290)], min_count=2
            )
        ),
    }


@pytest.mark.parametrize("kind", conditions())
def test_filters_mean_the_same(client, grpc_client, filled, kind):
    condition = conditions()[kind]
    whole = models.Filter(must=[condition])
    negated = models.Filter(must_not=[condition])
    yes = same(client, grpc_client, lambda c: c.count(filled, whole))["count"]
    no = same(client, grpc_client, lambda c: c.count(filled, negated))["count"]
    assert yes + no == 300
    found = same(client, grpc_client, lambda c: c.scroll(filled, whole, limit=500))
    assert len(found[0]) == yes
    assert 0 < yes < 300 or kind in ("any of none", "is_null", "is_empty")


def micros(text):
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


def test_points_come_in_the_same_order_by_a_field(client, grpc_client, filled):
    for field, schema in (("row", "integer"), ("double", "float"), ("at", "datetime")):
        client.create_payload_index(filled, field, schema, wait=True)
    some = models.Filter(must_not=[models.FieldCondition(key="row", match=models.MatchAny(any=[5, 6]))])
    for order in (
        "row",
        models.OrderBy(key="double", direction=models.Direction.DESC, start_from=40.5),
        models.OrderBy(key="row", start_from=290),
        models.OrderBy(key="at", start_from=datetime(2024, 2, 20, tzinfo=timezone.utc)),
        models.OrderBy(key="at", direction="desc", start_from="2024-02-10 00:00:00"),
    ):
        ask = lambda c: c.scroll(filled, some, order_by=order, limit=40)  # noqa: E731, B023
        points, next_page = same(client, grpc_client, ask)
        assert next_page is None and points
        assert all("order_value" in point for point in points)
    assert points[0]["order_value"] == micros("2024-02-09T22:00:00+00:00")


def test_all_kinds_of_field_indexes_are_shown_alike(client, grpc_client, filled):
    kinds = {
        "double": models.FloatIndexParams(type="float", is_principal=True),
        "flag": models.BoolIndexParams(type="bool"),
        "at": models.DatetimeIndexParams(type="datetime", is_principal=False),
        "uid": models.UuidIndexParams(type="uuid", is_tenant=True),
    }
    for maker in (client, grpc_client):
        for field, params in kinds.items():
            maker.create_payload_index(filled, field, params, wait=True)
        shown = same(client, grpc_client, lambda c: c.get_collection(filled))["payload_schema"]
        for field, params in kinds.items():
            given = params.model_dump(mode="json", exclude_none=True)
            assert shown[field]["params"] == given
            assert shown[field]["data_type"] == given["type"]
            assert shown[field].get("points", 0) == (300 if field in ("double", "at") else 0)
            maker.delete_payload_index(filled, field, wait=True)


def test_updates_do_the_same_and_are_acknowledged_alike(client, grpc_client, name):
    for number, writer in enumerate((client, grpc_client)):
        reader = (grpc_client, client)[number]
        writer.create_collection(
            name, vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT)
        )
        points = [
            models.PointStruct(id=n, vector=[n, 1], payload={"n": n, "deep": {"a": 1}})
            for n in range(1, 7)
        ]
        done = writer.upsert(name, points, wait=True)
        assert (done.status, done.operation_id) == (models.UpdateStatus.COMPLETED, 1)
        done = writer.upsert(name, points[:1], wait=False)
        assert (done.status, done.operation_id) == (models.UpdateStatus.ACKNOWLEDGED, 2)
        writer.set_payload(name, {"b": [1, None]}, points=[2, 3], key="deep")
        one = models.Filter(must=[models.FieldCondition(key="n", match=models.MatchValue(value=5))])
        writer.set_payload(name, {"five": True}, points=one)
        writer.delete(name, [1, 99])
        writer.delete(name, models.FilterSelector(filter=models.Filter(
            must=[models.FieldCondition(key="n", match=models.MatchValue(value=6))]
        )))
        found = settled(reader.scroll(name, limit=10)[0])
        assert [point["id"] for point in found] == [2, 3, 4, 5]
        assert found[0]["payload"] == {"n": 2, "deep": {"a": 1, "b": [1, None]}}
        assert found[3]["payload"] == {"n": 5, "deep": {"a": 1}, "five": True}
        assert writer.delete_collection(name)


def test_field_indexes_are_shown_alike_and_tenants_are_accepted(client, grpc_client, filled):
    tenant = models.KeywordIndexParams(
        type=models.KeywordIndexType.KEYWORD, is_tenant=True, on_disk=False
    )
    both_ways = models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=True, range=True, is_principal=True
    )
    shown = []
    for maker in (client, grpc_client):
        maker.create_payload_index(filled, "lexname", tenant, wait=True)
        maker.create_payload_index(filled, "row", both_ways, wait=True)
        maker.create_payload_index(filled, "pos", models.PayloadSchemaType.KEYWORD, wait=True)
        info = same(client, grpc_client, lambda c: c.get_collection(filled))
        shown.append(info["payload_schema"])
        some = models.Filter(
            must=[models.FieldCondition(key="row", range=models.Range(lt=100))],
            must_not=[models.FieldCondition(key="pos", match=models.MatchValue(value="v"))],
        )
        assert same(client, grpc_client, lambda c: c.count(filled, some))["count"] <= 100
        for field in ("lexname", "row", "pos"):
            maker.delete_payload_index(filled, field, wait=True)
        info = same(client, grpc_client, lambda c: c.get_collection(filled))
        assert "payload_schema" not in info
    assert shown[0] == shown[1]
    assert shown[0]["lexname"]["params"] == {"type": "keyword", "is_tenant": True, "on_disk": False}
    assert shown[0]["row"] == {
        "data_type": "integer",
        "params": {"type": "integer", "lookup": True, "range": True, "is_principal": True},
        "points": 300,
    }
    assert "params" not in shown[0]["pos"]


def test_without_a_graph_every_search_is_right(server, client, grpc_client, name, words):
    grpc_client.create_collection(
        name,
        vectors_config=models.VectorParams(size=words.rows.shape[1], distance=models.Distance.COSINE),
        hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
        optimizers_config=models.OptimizersConfigDiff(indexing_threshold=1),
    )
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    grpc_client.create_payload_index(name, "tenant", tenant, wait=True)
    count = 2000
    payloads = [{"tenant": f"t{row % 4}"} for row in range(count)]
    packed.upload(server, name, words.rows[:count], payloads)
    base = words.rows[:count].astype(np.float64)
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    for n in range(10):
        query = words.queries[n].astype(np.float64)
        rows = [row for row in range(count) if row % 4 == n % 4]
        best = sorted(rows, key=lambda row: -(base[row] @ query))[:10]
        mine = models.Filter(
            must=[models.FieldCondition(key="tenant", match=models.MatchValue(value=f"t{n % 4}"))]
        )
        found = same(
            client,
            grpc_client,
            lambda c: c.query_points(name, query.tolist(), query_filter=mine, limit=10),
        )["points"]
        assert [point["id"] for point in found] == best
    info = same(client, grpc_client, lambda c: c.get_collection(name))
    assert info["status"] == "green", info
    assert info.get("indexed_vectors_count", 0) == 0


def test_bad_requests_are_refused_alike(client, grpc_client, filled):
    point = lambda vector: [models.PointStruct(id=1, vector=vector)]  # noqa: E731
    threshold = models.Filter(
        must=[models.FieldCondition(key="a b", match=models.MatchValue(value=1))]
    )
    deep = models.Filter()
    for _ in range(20):
        deep = models.Filter(must=[deep])
    for call, part in (
        (lambda c: c.upsert(filled, point({"text": [1.0, 2.0]})), "expected dim: 384, got 2"),
        (lambda c: c.upsert(filled, point({"nope": [1.0]})), "nope"),
        (lambda c: c.query_points(filled, [1.0], using="text"), "expected dim: 384, got 1"),
        (lambda c: c.query_points(filled, [1.0], using="nope"), "nope"),
        (lambda c: c.query_points(filled, 10**15, using="small"), "1000000000000000"),
        (lambda c: c.query_points(filled, limit=0), "limit: value 0 invalid"),
        (lambda c: c.scroll(filled, limit=0), "limit: value 0 invalid"),
        (lambda c: c.scroll(filled, order_by="row"), "No range index for `order_by` key: `row`"),
        (lambda c: c.count(filled, threshold), "Invalid json path: 'a b'"),
        (lambda c: c.count("no-such", None), "Collection `no-such` doesn't exist!"),
        (lambda c: c.set_payload(filled, {"a": 1}, points=[1], key="a b"), "Invalid json path"),
        (
            lambda c: c.query_points(filled, models.FusionQuery(fusion=models.Fusion.RRF)),
            "`query.fusion` is not served yet",
        ),
        (
            lambda c: c.query_points(filled, models.SampleQuery(sample=models.Sample.RANDOM)),
            "`query.sample` is not served yet",
        ),
        (
            lambda c: c.query_points(filled, prefetch=[models.Prefetch(query=1)], query=1),
            "`prefetch` is not served yet",
        ),
        (
            lambda c: c.create_payload_index(filled, "x", models.PayloadSchemaType.GEO),
            "field_schema: geo",
        ),
        (
            lambda c: c.create_collection(
                "x", models.VectorParams(size=0, distance=models.Distance.DOT)
            ),
            "vectors.size: value 0 invalid, must be from 1 to 65536",
        ),
        (
            lambda c: c.create_collection(
                "x",
                models.VectorParams(size=1, distance=models.Distance.DOT),
                hnsw_config=models.HnswConfigDiff(ef_construct=3),
            ),
            "hnsw_config.ef_construct: value 3 invalid, must be 4 or larger",
        ),
    ):
        assert part in refusals(client, grpc_client, call)
    assert same(client, grpc_client, lambda c: c.count(filled, deep))["count"] == 300
    # In a URL these would be other paths.
    for name, part in (("x/y", "cannot contain '/'"), ("..", "cannot be `.`"), ("", "1 to 255")):
        with pytest.raises(grpc.RpcError) as refused:
            grpc_client.create_collection(
                name, models.VectorParams(size=1, distance=models.Distance.DOT)
            )
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert part in refused.value.details()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_by_point_and_vector(grpc_client, filled, bad):
    before = grpc_client.count(filled).count
    with pytest.raises(grpc.RpcError) as refused:
        grpc_client.upsert(filled, [models.PointStruct(id=9_999, vector={"small": [1.0, bad]})])
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "point 9999, vector `small`: element 1 is" in refused.value.details()
    with pytest.raises(grpc.RpcError) as refused:
        grpc_client.query_points(filled, [0.0, bad], using="small")
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert grpc_client.count(filled).count == before


def test_vectors_in_the_encoding_of_older_clients_are_taken(server, grpc_client, name):
    grpc_client.create_collection(
        name, vectors_config=models.VectorParams(size=3, distance=models.Distance.DOT)
    )
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = wire.PointsStub(channel)
        point = wire.PointStruct(
            id=wire.PointId(num=1), vectors=wire.Vectors(vector=wire.Vector(data=[1.0, 2.0, 3.0]))
        )
        answer = stub.Upsert(wire.UpsertPoints(collection_name=name, wait=True, points=[point]))
        assert answer.result.status == wire.UpdateStatus.Completed and answer.time > 0
        assert not answer.HasField("usage")
        got = stub.Get(
            wire.GetPoints(
                collection_name=name,
                ids=[wire.PointId(num=1)],
                with_vectors=wire.WithVectorsSelector(enable=True),
            )
        )
        assert list(got.result[0].vectors.vector.dense.data) == [1.0, 2.0, 3.0]


def test_health_is_told_to_both_kinds_of_probes(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        ask = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert ask(b"") == b"\x08\x01"  # SERVING
        reply = wire.QdrantStub(channel).HealthCheck(wire.HealthCheckRequest())
        assert reply.title == "qdrant - vector search engine" and reply.version == "1.19.0"


def test_what_is_not_served_yet_is_unimplemented_by_its_name(server, filled):
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = wire.PointsStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            stub.SearchGroups(wire.SearchPointGroups(collection_name=filled, group_by="row"))
        assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
        assert "`Points/SearchGroups` is not served yet" in refused.value.details()


def test_a_time_limit_of_zero_is_refused_alike(server, filled):
    """Sent by hand: a client would give up by itself after no time at all."""
    text = "timeout: value 0 invalid, must be 1 or larger"
    reply = server.call("POST", f"/collections/{filled}/points/count?timeout=0", {})
    assert reply.status == 422 and text in reply.error
    with packed.channel(server) as channel, pytest.raises(grpc.RpcError) as refused:
        wire.PointsStub(channel).Count(wire.CountPoints(collection_name=filled, timeout=0))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert text in refused.value.details()


def test_a_client_that_compresses_gets_the_same_answers(server, grpc_client, filled):
    packed = server.client(grpc=True, grpc_compression=grpc.Compression.Gzip)
    try:
        first = settled(packed.scroll(filled, limit=300, with_vectors=True))
        assert first == settled(grpc_client.scroll(filled, limit=300, with_vectors=True))
    finally:
        packed.close()
