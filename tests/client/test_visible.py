"""What an operator sees: segments, metrics, memory, jobs with their costs, and plans that are not run."""

import time
import uuid

import packed


def fill(server, name, rows, **optimizers):
    """A collection of these rows, without payloads."""
    body = {
        "vectors": {"size": len(rows[0]), "distance": "Cosine"},
        "optimizers_config": optimizers,
    }
    server.call("PUT", f"/collections/{name}", body).result
    packed.upload(server, name, rows, wait=True)


def ext(server, name, what):
    return server.call("GET", f"/ext/collections/{name}/{what}").result


def test_segments_agree_with_the_info_of_their_collection(server, name, words):
    # Full segments of 1,200 rows.
    fill(server, name, words.rows[:3000], indexing_threshold=100, max_segment_size=1800)
    server.call("POST", f"/collections/{name}/points/delete?wait=true", {"points": [1, 2, 3]}).result
    info = server.wait_until_idle(name, within=120)
    segments = ext(server, name, "segments")["segments"]
    assert len(segments) == info["segments_count"]
    assert {segment["state"] for segment in segments} >= {"sealed"}
    assert sum(segment["points_count"] for segment in segments) == 2997
    assert sum(segment["deleted_count"] for segment in segments) <= 3
    indexed = sum(segment["vectors"][0]["indexed_vectors_count"] for segment in segments)
    assert indexed == info["indexed_vectors_count"]
    for segment in segments:
        assert uuid.UUID(segment["uuid"]).version == 7
        assert segment["rows_count"] == segment["points_count"] + segment["deleted_count"]
        assert segment["disk_bytes"] > segment["rows_count"] * 384 * 4
        assert 0 <= segment["age_sec"] < 600 and segment["job"] is None
        vector = segment["vectors"][0]
        assert (vector["name"], vector["size"]) == ("", 384)
        assert vector["vectors_count"] == segment["points_count"]
        assert vector["hnsw_config"]["m"] == 16


def test_a_segment_at_work_names_the_job_that_the_list_of_jobs_has(server, name, words):
    fill(server, name, words.rows[:6000], indexing_threshold=100)
    deadline = time.monotonic() + 60
    named = set()
    while not named:
        assert time.monotonic() < deadline
        segments = ext(server, name, "segments")["segments"]
        named = {s["job"]["uuid"] for s in segments if s["job"]}
        assert all(s["job"]["optimizer"] == "indexing" for s in segments if s["job"])
    work = server.optimizations(name, "?with=completed")
    assert named <= {job["uuid"] for job in work["running"] + work["completed"]}


def test_what_is_not_there_is_a_404_in_the_envelope(server):
    for path in ["/ext/collections/none/segments"]:
        reply = server.call("GET", path)
        assert reply.status == 404 and "none" in reply.error
