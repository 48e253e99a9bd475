"""Collections: create, look at, list, delete; what the server says about itself."""

import time
from importlib.metadata import version

import pytest
from qdrant_client import models
from qdrant_client.common.version_check import get_server_version, is_compatible
from qdrant_client.http.exceptions import UnexpectedResponse


def cosine(size):
    return models.VectorParams(size=size, distance=models.Distance.COSINE)


def test_the_server_introduces_itself_as_qdrant_1_19(server):
    answer = server.call("GET", "/").json()
    assert answer["title"] == "qdrant - vector search engine"
    assert answer["version"].startswith("1.19.")


def test_the_client_finds_its_own_version_and_the_servers_compatible(server):
    """Field report U1: a client warns, or a benchmark runs on nothing, when versions differ."""
    told = get_server_version(server.url, {}, None, 10)
    assert is_compatible(version("qdrant-client"), told), told


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/healthz", "healthz check passed"),
        ("/livez", "healthz check passed"),
        ("/readyz", "all shards are ready"),
    ],
)
def test_health_is_told_in_plain_text(server, path, text):
    reply = server.call("GET", path)
    assert (reply.status, reply.text) == (200, text)
    assert reply.headers["content-type"].startswith("text/plain")


def test_a_collection_can_be_created_found_and_deleted(client, name):
    assert not client.collection_exists(name)
    assert client.create_collection(name, vectors_config=cosine(4))
    assert client.collection_exists(name)
    assert name in [c.name for c in client.get_collections().collections]
    assert client.delete_collection(name)
    assert not client.collection_exists(name)
    assert name not in [c.name for c in client.get_collections().collections]


def test_creating_a_collection_twice_is_a_conflict(server, client, name):
    client.create_collection(name, vectors_config=cosine(4))
    with pytest.raises(UnexpectedResponse) as refusal:
        client.create_collection(name, vectors_config=cosine(4))
    assert refusal.value.status_code == 409
    body = {"vectors": {"size": 8, "distance": "Dot"}}
    reply = server.call("PUT", f"/collections/{name}", body)
    assert reply.error == f"Wrong input: Collection `{name}` already exists!"
    assert client.get_collection(name).config.params.vectors.size == 4


def test_deleting_a_collection_that_is_not_there_answers_false(server):
    assert server.call("DELETE", "/collections/never-made").result is False


def test_a_new_collection_shows_its_settings_and_the_defaults(server, client, name):
    client.create_collection(
        name,
        vectors_config={
            "small": models.VectorParams(size=3, distance=models.Distance.EUCLID, on_disk=True),
            "large": cosine(12),
        },
        hnsw_config=models.HnswConfigDiff(m=24, ef_construct=77),
        optimizers_config=models.OptimizersConfigDiff(indexing_threshold=1234),
        on_disk_payload=False,
        metadata={"owner": "tests", "n": 1},
    )
    info = server.call("GET", f"/collections/{name}").result
    assert (info["status"], info["optimizer_status"]) == ("green", "ok")
    assert (info["points_count"], info["indexed_vectors_count"]) == (0, 0)
    assert info["update_queue"] == {"length": 0}
    assert info["payload_schema"] == {}
    config = info["config"]
    vectors = config["params"]["vectors"]
    assert vectors["small"] == {"size": 3, "distance": "Euclid", "on_disk": True}
    assert vectors["large"] == {"size": 12, "distance": "Cosine"}
    assert config["params"]["on_disk_payload"] is False
    assert (config["hnsw_config"]["m"], config["hnsw_config"]["ef_construct"]) == (24, 77)
    assert config["hnsw_config"]["full_scan_threshold"] == 10000
    optimizer = config["optimizer_config"]
    assert (optimizer["indexing_threshold"], optimizer["flush_interval_sec"]) == (1234, 5)
    nine = "deleted_threshold vacuum_min_vector_number default_segment_number max_segment_size"
    nine += " memmap_threshold indexing_threshold flush_interval_sec max_optimization_threads"
    assert set(optimizer) == {*nine.split(), "prevent_unoptimized"}
    assert config["wal_config"]["wal_capacity_mb"] == 32
    assert config["metadata"] == {"owner": "tests", "n": 1}
    parsed = client.get_collection(name)
    assert parsed.config.params.vectors["small"].distance == models.Distance.EUCLID


def test_a_collection_made_anew_under_an_old_name_is_empty(client, name, words):
    for cycle in range(3):
        client.create_collection(name, vectors_config=cosine(384))
        client.upload_collection(name, vectors=words.rows[: 50 + cycle], batch_size=64, wait=True)
        assert client.count(name).count == 50 + cycle
        found = client.query_points(name, query=words.queries[0], limit=100).points
        assert len(found) == 50 + cycle
        assert client.delete_collection(name)
    client.create_collection(name, vectors_config=cosine(384))
    assert client.count(name).count == 0
    assert client.query_points(name, query=words.queries[0]).points == []
    assert client.scroll(name) == ([], None)


def test_a_collection_survives_a_restart_with_its_settings(new_server):
    server = new_server().start()
    body = {"vectors": {"a": {"size": 4, "distance": "Dot"}}, "hnsw_config": {"m": 8}}
    assert server.call("PUT", "/collections/kept", body).result is True
    assert server.call("PUT", "/collections/gone", body).result is True
    assert server.call("DELETE", "/collections/gone").result is True
    index = {"field_name": "city", "field_schema": "keyword"}
    server.call("PUT", "/collections/kept/index?wait=true", index)
    before = server.call("GET", "/collections/kept").result
    server.kill()
    server.start()
    assert server.call("GET", "/collections").result == {"collections": [{"name": "kept"}]}
    after = server.call("GET", "/collections/kept").result
    assert after["config"] == before["config"]
    assert after["payload_schema"] == before["payload_schema"] != {}


def test_looking_at_a_collection_is_quick(server, client, name):
    client.create_collection(name, vectors_config=cosine(4))
    begin = time.monotonic()
    for _ in range(20):
        server.call("GET", f"/collections/{name}")
    assert (time.monotonic() - begin) / 20 < 0.1
