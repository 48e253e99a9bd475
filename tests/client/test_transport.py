"""How bytes travel: large messages, compression, slashes, the page at /dashboard."""

import gzip
import json
import random

import grpc
import numpy as np
import pytest
from qdrant_client import grpc as wire
from qdrant_client import models

MB = 1 << 20


@pytest.fixture
def wide(grpc_client, name):
    """A collection of long vectors."""
    grpc_client.create_collection(
        name,
        vectors_config=models.VectorParams(size=4096, distance=models.Distance.DOT),
        optimizers_config=models.OptimizersConfigDiff(max_optimization_threads=0),
    )
    return name


def dense(vector):
    """A DenseVector of an array: field 1, packed floats, without a Python float for each."""
    data, size = vector.tobytes(), []
    left = len(data)
    while left >= 0x80:
        size.append(left & 0x7F | 0x80)
        left >>= 7
    return wire.DenseVector.FromString(b"\x0a" + bytes([*size, left]) + data)


def big_upsert(name, count, seed):
    rng = np.random.default_rng(random.Random(seed).getrandbits(64))
    vectors = rng.random((count, 4096), dtype=np.float32)
    points = [
        wire.PointStruct(
            id=wire.PointId(num=row),
            vectors=wire.Vectors(vector=wire.Vector(dense=dense(vectors[row]))),
        )
        for row in range(count)
    ]
    return vectors, wire.UpsertPoints(collection_name=name, wait=True, points=points)


def test_a_message_over_64_mb_is_taken_and_one_comes_back(server, grpc_client, wide, seed):
    count = 200
    vectors, request = big_upsert(wide, count, seed)
    text = random.Random(seed).randbytes(170_000).hex()
    for point in request.points:
        point.payload["text"].string_value = f"{point.id.num} {text}"
    assert request.ByteSize() > 64 * MB
    unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", options=unlimited) as channel:
        stub = wire.PointsStub(channel)
        answer = stub.Upsert(request, timeout=120)
        assert answer.result.status == wire.UpdateStatus.Completed
        page = stub.Scroll(
            wire.ScrollPoints(
                collection_name=wide,
                limit=count,
                with_vectors=wire.WithVectorsSelector(enable=True),
            ),
            timeout=120,
        )
        assert page.ByteSize() > 64 * MB and len(page.result) == count
        for point in page.result:
            assert point.payload["text"].string_value == f"{point.id.num} {text}"
        for point in page.result[::40]:
            assert np.array_equal(
                np.float32(point.vectors.vector.dense.data), vectors[point.id.num]
            )
    assert grpc_client.count(wide).count == count


def test_a_message_over_the_limit_is_refused_with_the_option_that_sets_it(new_server, seed):
    server = new_server({"FLATWATER__SERVICE__MAX_GRPC_MESSAGE_SIZE_MB": "1"}).start()
    _, request = big_upsert("c", 80, seed)
    assert request.ByteSize() > MB
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        for packed in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            with pytest.raises(grpc.RpcError) as refused:
                wire.PointsStub(channel).Upsert(request, compression=packed)
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
    packed = server.call("POST", f"{path}/scroll", ask, headers=accepts)
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 4
    assert json.loads(gzip.decompress(packed.body))["result"] == plain.result
    small = server.call("GET", f"/collections/{name}", headers=accepts)
    assert "content-encoding" not in small.headers and small.result["points_count"] == 200


def test_a_compressed_body_counts_as_it_comes_out_and_must_be_what_it_says(server, client, name):
    client.create_collection(
        name, vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT)
    )
    path, packed = f"/collections/{name}/points", {"Content-Encoding": "gzip"}
    bomb = gzip.compress(b'{"points": [' + b" " * (40 * MB) + b"]}")
    assert len(bomb) < MB
    reply = server.call("PUT", path, bomb, headers=packed)
    assert reply.status == 400 and "limit: 32 MB" in reply.error
    reply = server.call("PUT", path, b'{"points": []}', headers=packed)
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
