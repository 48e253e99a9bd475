"""/optimizations and the status of a collection: what is being done, and why nothing is."""

import re
import time
import uuid

import pytest
from qdrant_client import models

import packed

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
SUMMARY = {"queued_optimizations", "queued_segments", "queued_points", "idle_segments"}
NODE = {"name", "started_at", "finished_at", "duration_sec", "done", "total", "children"}


def fill(server, name, rows, **optimizers):
    vectors = {"size": 384, "distance": "Cosine"}
    body = {"vectors": vectors, "optimizers_config": optimizers}
    server.call("PUT", f"/collections/{name}", body).result
    packed.upload(server, name, rows, wait=False)


def nodes(node):
    yield node
    for child in node.get("children", []):
        yield from nodes(child)


def check_job(job, status):
    assert uuid.UUID(job["uuid"])
    assert job["optimizer"] == "indexing"
    assert job["status"] == status
    for segment in job["segments"]:
        assert uuid.UUID(segment["uuid"]) and segment["points_count"] >= 0
    tree = list(nodes(job["progress"]))
    assert all(node.keys() <= NODE for node in tree)
    for node in tree:
        for moment in ("started_at", "finished_at"):
            assert moment not in node or TIME.match(node[moment]), node
        assert node.get("done", 0) <= node.get("total", float("inf"))
    return tree


def test_a_collection_at_rest_has_nothing_running(server, client, name, words):
    fill(server, name, words.rows[:20])
    work = server.optimizations(name)
    assert work["running"] == []
    assert work["summary"].keys() == SUMMARY
    assert work["summary"]["queued_optimizations"] == 0
    assert not {"queued", "completed", "idle_segments"} & work.keys()


def test_what_is_asked_for_is_shown_and_nothing_else(server, client, name, words):
    fill(server, name, words.rows[:20])
    whole = server.optimizations(name, "?with=queued,%20completed,idle_segments&completed_limit=3")
    assert whole.keys() == {"summary", "running", "queued", "completed", "idle_segments"}
    assert whole["queued"] == [] and whole["completed"] == []
    assert server.optimizations(name, "?with=queued").keys() == {"summary", "running", "queued"}
    reply = server.call("GET", f"/collections/{name}/optimizations?with=queued,colour")
    assert reply.status == 400 and "colour" in reply.error


def test_indexing_is_shown_while_it_runs_and_when_it_is_done(server, client, name, words):
    fill(server, name, words.rows[:3000], indexing_threshold=100)
    seen_yellow, progress = False, []
    deadline = time.monotonic() + 120
    while True:
        work = server.optimizations(name)
        for job in work["running"]:
            tree = check_job(job, "optimizing")
            progress += [(n["done"], n["total"]) for n in tree if {"done", "total"} <= n.keys()]
            seen_yellow |= client.get_collection(name).status == models.CollectionStatus.YELLOW
        if not work["running"] and client.get_collection(name).status == models.CollectionStatus.GREEN:
            break
        assert time.monotonic() < deadline, work
        time.sleep(0.02)
    assert seen_yellow and len(set(progress)) >= 2, progress[:20]
    done = server.optimizations(name, "?with=completed")["completed"]
    assert done
    for job in done:
        tree = check_job(job, "done")
        assert "finished_at" in tree[0] and tree[0]["duration_sec"] >= 0
    assert client.get_collection(name).indexed_vectors_count >= 3000 - 100 * 1024 / (384 * 4)


def test_below_the_threshold_a_collection_is_green_without_a_graph(server, client, name, words):
    """Field report L24: a small collection is done although nothing is indexed."""
    fill(server, name, words.rows[:100])
    info = server.wait_until_idle(name, within=10)
    assert (info["points_count"], info["indexed_vectors_count"]) == (100, 0)


def test_threshold_0_means_no_indexing_and_green(server, client, name, words):
    fill(server, name, words.rows[:3000], indexing_threshold=0)
    info = server.wait_until_idle(name, within=10)
    time.sleep(0.5)
    info = server.call("GET", f"/collections/{name}").result
    assert (info["status"], info["indexed_vectors_count"]) == ("green", 0)
    hit = client.query_points(name, words.rows[2999], limit=1).points[0]
    assert hit.id == 2999


def test_work_that_may_not_run_is_grey_with_a_reason(server, client, name, words):
    """Field report L5: with optimization threads 0 the status was yellow for ever."""
    fill(server, name, words.rows[:1500], indexing_threshold=100, max_optimization_threads=0)
    time.sleep(0.5)
    reply = server.call("GET", f"/collections/{name}")
    info = reply.result
    assert (info["status"], info["indexed_vectors_count"]) == ("grey", 0)
    assert "max_optimization_threads" in reply.text.replace('"max_optimization_threads":0', "")
    assert server.optimizations(name)["running"] == []


@pytest.mark.parametrize("cycle", range(3))
def test_dropping_and_creating_again_ends_green_every_time(server, client, words, cycle):
    """Field report L2: after a few cycles indexing never ended."""
    name = "again"
    client.delete_collection(name)
    fill(server, name, words.rows[:1500], indexing_threshold=100)
    if cycle == 1:
        client.delete_collection(name)  # While it is being indexed.
        fill(server, name, words.rows[:1500], indexing_threshold=100)
    info = server.wait_until_idle(name, within=60)
    assert info["points_count"] == 1500
    client.delete_collection(name)
