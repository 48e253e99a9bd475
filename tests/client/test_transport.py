"""How bytes travel: large messages, compression, slashes, the page at /dashboard."""

import gzip
import json
import random

import grpc
import numpy as np
import pytest
from qdrant_client import grpc as wire
from qdrant_client import models

import packed

MB = 1 << 20


def unknown_field(size):
    """A field that no message has, `size` bytes long: a reader passes over it."""
    return packed.varint(1000 << 3 | 2) + packed.varint(size) + bytes(size)


def test_a_message_over_64_mb_is_taken_and_one_comes_back(server, grpc_client, name, seed):
    """Field report U2. What makes them long is cheap to read: a field that nobody knows, and the one
    long vector that there is, many times over."""
    size, times = 65536, 270
    grpc_client.create_collection(
        name,
        vectors_config=models.VectorParams(size=size, distance=models.Distance.DOT),
        optimizers_config=models.OptimizersConfigDiff(max_optimization_threads=0),
    )
    rng = np.random.default_rng(random.Random(seed).getrandbits(64))
    vector = rng.random(size, dtype=np.float32)
    point = wire.PointStruct(id=wire.PointId(num=7), vectors=packed.vectors(vector))
    upsert = wire.UpsertPoints(collection_name=name, wait=True, points=[point])
    request = upsert.SerializeToString() + unknown_field(65 * MB)
    with packed.channel(server) as channel:
        send = channel.unary_unary(
            "/qdrant.Points/Upsert", response_deserializer=wire.PointsOperationResponse.FromString
        )
        answer = send(request, timeout=60)
        assert answer.result.status == wire.UpdateStatus.Completed
        one = wire.QueryPoints(
            collection_name=name, limit=1, with_vectors=wire.WithVectorsSelector(enable=True)
        )
        batch = wire.QueryBatchPoints(collection_name=name, query_points=[one] * times)
        page = wire.PointsStub(channel).QueryBatch(batch, timeout=60)
        assert page.ByteSize() > 64 * MB and len(page.result) == times
        for answer in page.result[::90]:
            assert np.array_equal(np.float32(answer.result[0].vectors.vector.dense.data), vector)
    assert grpc_client.count(name).count == 1


def test_a_message_over_the_limit_is_refused_with_the_option_that_sets_it(new_server, seed):
    server = new_server({"FLATWATER__SERVICE__MAX_GRPC_MESSAGE_SIZE_MB": "1"}).start()
    # Random, so that it is over the limit when it is compressed too.
    rows = np.random.default_rng(random.Random(seed).getrandbits(64)).random((80, 4096), np.float32)
    points = [
        wire.PointStruct(id=wire.PointId(num=n), vectors=packed.vectors(row))
        for n, row in enumerate(rows)
    ]
    request = wire.UpsertPoints(collection_name="c", points=points)
    assert request.ByteSize() > MB
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            with pytest.raises(grpc.RpcError) as refused:
                wire.PointsStub(channel).Upsert(request, compression=compression)
            assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert "limit: 1 MB" in refused.value.details()
            assert "service.max_grpc_message_size_mb" in refused.value.details()
        assert wire.CollectionsStub(channel).List(wire.ListCollectionsRequest()).time > 0


def test_a_large_answer_is_compressed_for_who_accepts_it_and_a_small_one_is_not(
    server, client, name
):
    client.create_collection(
        name, vectors_config=models.VectorParams(size=64, distance=models.Distance.DOT)
    )
    points = [{"id": n, "vector": [n + 0.5] * 64} for n in range(200)]
    # Bodies of requests may be compressed too.
    body = gzip.compress(json.dumps({"points": points}).encode())
    path = f"/collections/{name}/points"
    reply = server.call("PUT", f"{path}?wait=true", body, headers={"Content-Encoding": "gzip"})
    assert reply.result["status"] == "completed"
    ask = {"limit": 200, "with_vector": True}
    plain = server.call("POST", f"{path}/scroll", ask)
    assert "content-encoding" not in plain.headers and len(plain.body) > 14_600
    accepts = {"Accept-Encoding": "gzip, deflate, br"}
    zipped = server.call("POST", f"{path}/scroll", ask, headers=accepts)
    assert zipped.headers["content-encoding"] == "gzip"
    assert len(zipped.body) < len(plain.body) / 4
    assert json.loads(gzip.decompress(zipped.body))["result"] == plain.result
    small = server.call("GET", f"/collections/{name}", headers=accepts)
    assert "content-encoding" not in small.headers and small.result["points_count"] == 200


def test_a_compressed_body_counts_as_it_comes_out_and_must_be_what_it_says(server, client, name):
    client.create_collection(
        name, vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT)
    )
    path, zipped = f"/collections/{name}/points", {"Content-Encoding": "gzip"}
    bomb = gzip.compress(b'{"points": [' + b" " * (40 * MB) + b"]}")
    assert len(bomb) < MB
    reply = server.call("PUT", path, bomb, headers=zipped)
    assert reply.status == 400 and "limit: 32 MB" in reply.error
    reply = server.call("PUT", path, b'{"points": []}', headers=zipped)
    assert reply.status == 400 and "not compressed as announced" in reply.error
    for unknown in ("br", "zstd", "gzip, gzip"):
        reply = server.call("PUT", path, b"{}", headers={"Content-Encoding": unknown})
        assert reply.status == 415 and "expected gzip" in reply.error


def test_the_page_says_what_runs_and_what_to_try(server):
    reply = server.call("GET", "/dashboard/")
    assert reply.status == 200 and reply.headers["content-type"].startswith("text/html")
    assert reply.headers["x-frame-options"] == "DENY"
    for word in ("Flatwater", "1.19.0", "ready", f"port {server.grpc_port}", "curl", "/points/query"):
        assert word in reply.text, word
    assert "{{" not in reply.text


def test_a_stop_lets_calls_in_flight_end(new_server):
    server = new_server().start()
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = wire.CollectionsStub(channel)
        assert stub.List(wire.ListCollectionsRequest()).time > 0
        code, seconds = server.stop(within=10)
        assert code == 0 and seconds < 5, server.log()
        with pytest.raises(grpc.RpcError) as refused:
            stub.List(wire.ListCollectionsRequest())
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
