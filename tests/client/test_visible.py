"""What an operator sees: segments, metrics, memory, jobs with their costs, and plans that are not run."""

import http.client
import re
import time
import uuid

import pytest

import packed
from flatwater_process import free_port


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
    for method, path in [
        ("GET", "/ext/collections/none/segments"),
        ("GET", "/ext/collections/none/jobs"),
        ("POST", "/ext/collections/none/plan"),
        ("GET", "/collections/none/memory"),
    ]:
        reply = server.call(method, path)
        assert reply.status == 404 and "none" in reply.error, path


# One sample of the text format: name, labels, value.
SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


def parsed(text):
    """Samples by name: a list of (labels, value). Fails on anything that Prometheus would not read:
    a line of another form, a family whose samples are apart or come without their type."""
    samples, types, family = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in types and kind in ("gauge", "counter", "histogram"), line
            types[family] = kind
            continue
        if line.startswith("# HELP "):
            assert re.match(r"^# HELP [a-zA-Z0-9_:]+ \S", line), line
            continue
        match = SAMPLE.match(line)
        assert match, line
        name, labels, value = match.groups()
        labels = labels or ""
        assert LABEL.sub("", labels) == "", line
        suffixes = ("_bucket", "_sum", "_count") if types[family] == "histogram" else ("",)
        assert name in {family + suffix for suffix in suffixes}, (family, line)
        samples.setdefault(name, []).append((dict(LABEL.findall(labels)), float(value)))
    for name, series in samples.items():
        keys = [tuple(sorted(labels.items())) for labels, _ in series]
        assert len(keys) == len(set(keys)), f"{name} has a series twice"
    return samples


def scrape(server, headers=None):
    reply = server.call("GET", "/metrics", headers=headers)
    assert reply.status == 200, reply.text
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parsed(reply.text)


def value(samples, name, **labels):
    """The one value of the series with these labels."""
    found = [v for ls, v in samples.get(name, []) if labels.items() <= ls.items()]
    assert len(found) == 1, (name, labels, samples.get(name))
    return found[0]


def test_metrics_agree_with_what_the_collection_tells(server, name, words):
    fill(server, name, words.rows[:3000], indexing_threshold=100, max_segment_size=1800)
    server.call("POST", f"/collections/{name}/points/delete?wait=true", {"points": [1, 2, 3]}).result
    info = server.wait_until_idle(name, within=120)
    samples = scrape(server)
    assert value(samples, "app_info") == 1
    assert value(samples, "collections_total") == len(
        server.call("GET", "/collections").result["collections"]
    )
    assert value(samples, "collection_points", id=name) == 2997
    assert value(samples, "collection_vectors", collection=name, vector="") == 2997
    outside = 2997 - info["indexed_vectors_count"]
    assert value(samples, "collection_indexed_only_excluded_points", id=name, vector="") == outside
    assert value(samples, "flatwater_backlog_vectors", id=name) == outside
    assert value(samples, "flatwater_backlog_bytes", id=name) == outside * 384 * 4
    assert value(samples, "collection_running_optimizations", id=name) == 0
    assert value(samples, "collection_update_queue_length", id=name) == 0
    states = ["growing", "full", "sealed"]
    by_state = [value(samples, "flatwater_segments", id=name, state=s) for s in states]
    assert sum(by_state) == info["segments_count"]
    assert value(samples, "collections_vector_total") >= 2997
    assert value(samples, "memory_resident_bytes") > 1 << 20
    assert value(samples, "process_threads") > 3 and value(samples, "process_open_fds") > 3
    assert value(samples, "process_max_fds") >= value(samples, "process_open_fds")
    assert value(samples, "process_minor_page_faults_total") > 0


def test_a_deleted_collection_leaves_no_series(server, name, words):
    fill(server, name, words.rows[:10])
    assert value(scrape(server), "collection_points", id=name) == 10
    server.call("DELETE", f"/collections/{name}").result
    left = [n for n, series in scrape(server).items() for ls, _ in series if name in ls.values()]
    assert left == []


ENDPOINT = "/collections/{collection_name}/points/query"


def test_requests_are_counted_by_endpoint_and_status_and_timed(server, client, grpc_client, name, words):
    fill(server, name, words.rows[:100])
    series = {"method": "POST", "endpoint": ENDPOINT}
    grpc = {"endpoint": "/qdrant.Points/Query"}

    def counts():
        samples = scrape(server)
        return [
            sum(v for ls, v in samples.get(n, []) if want.items() <= ls.items())
            for n, want in (
                ("rest_responses_total", series | {"status": "200"}),
                ("rest_responses_total", series | {"status": "404"}),
                ("rest_responses_duration_seconds_count", series),
                ("grpc_responses_total", grpc | {"status": "0"}),
                ("grpc_responses_total", grpc | {"status": "5"}),
            )
        ], samples

    before, _ = counts()
    for _ in range(3):
        client.query_points(name, words.rows[0].tolist(), limit=1)
        grpc_client.query_points(name, words.rows[0].tolist(), limit=1)
    for one in (client, grpc_client):
        with pytest.raises(Exception):
            one.query_points("none", words.rows[0].tolist(), limit=1)
    after, samples = counts()
    assert [b - a for a, b in zip(before, after)] == [3, 1, 3, 3, 1]
    for interface, want in (("rest", series | {"status": "200"}), ("grpc", grpc | {"status": "0"})):
        seconds = f"{interface}_responses_{{}}duration_seconds"
        least, average, most = (
            value(samples, seconds.format(n), **want) for n in ("min_", "avg_", "max_")
        )
        assert 0 < least <= average <= most < 60
        buckets = [
            (float(ls["le"]), v)
            for ls, v in samples[seconds.format("") + "_bucket"]
            if want.items() <= ls.items()
        ]
        assert buckets == sorted(buckets) and buckets[-1][0] == float("inf")
        assert {0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 10, 50} <= {le for le, _ in buckets}
        assert buckets[-1][1] == value(samples, seconds.format("") + "_count", **want)


def test_a_name_with_every_sign_is_read_back_from_its_label(server):
    name = 'a b{c}=d,e#f'
    body = {"vectors": {"x y": {"size": 2, "distance": "Dot"}}}
    server.call("PUT", f"/collections/{name.replace(' ', '%20').replace('#', '%23')}", body).result
    samples = scrape(server)
    assert value(samples, "collection_points", id=name) == 0
    assert value(samples, "collection_vectors", collection=name, vector="x y") == 0
    server.call("DELETE", f"/collections/{name.replace(' ', '%20').replace('#', '%23')}").result


def test_metrics_need_a_key_where_keys_are_set_except_on_their_own_port(new_server):
    own = free_port()
    settings = {
        "QDRANT__SERVICE__API_KEY": "writer",
        "QDRANT__SERVICE__READ_ONLY_API_KEY": "reader",
        "QDRANT__SERVICE__METRICS_PORT": str(own),
        "QDRANT__SERVICE__METRICS_PREFIX": "qdrant_",
    }
    server = new_server(settings).start()
    assert server.call("GET", "/metrics").status == 401
    samples = scrape(server, {"api-key": "reader"})
    assert value(samples, "qdrant_collections_total") == 0
    assert all(name.startswith("qdrant_") for name in samples)
    connection = http.client.HTTPConnection("127.0.0.1", own, timeout=10)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.status == 200 and b"qdrant_app_info" in answer.read()
    connection.request("GET", "/collections")
    assert connection.getresponse().status == 404
    connection.close()


def test_a_prefix_that_no_metric_can_have_stops_the_start(new_server):
    server = new_server({"FLATWATER__SERVICE__METRICS_PREFIX": "1-"}).start(wait=False)
    assert server.process.wait(timeout=20) != 0
    assert "metrics_prefix" in server.log() and "1-" in server.log()
    server.process = None


PARTS = {"disk_bytes", "ram_bytes", "cached_bytes", "expected_cache_bytes"}


def test_memory_has_qdrants_shape_and_its_parts_add_up(server, name, words):
    fill(server, name, words.rows[:3000], indexing_threshold=100, max_segment_size=1800)
    index = {"field_name": "kind", "field_schema": "keyword"}
    server.call("PUT", f"/collections/{name}/index?wait=true", index).result
    server.wait_until_idle(name, within=120)
    memory = server.call("GET", f"/collections/{name}/memory").result
    assert memory.keys() == {
        "total", "vectors", "sparse_vectors", "payload", "payload_index", "other"
    }
    vector = memory["vectors"][0]
    assert vector["name"] == "" and memory["sparse_vectors"] == []
    assert [field["name"] for field in memory["payload_index"]] == ["kind"]
    parts = [vector["storage"], vector["index"], vector["quantized"], memory["payload"]]
    parts += [field["usage"] for field in memory["payload_index"]]
    parts += [memory["other"]["id_tracker"]]
    for part in (*parts, memory["total"]):
        assert part.keys() == PARTS and all(n >= 0 for n in part.values())
        assert part["cached_bytes"] <= part["disk_bytes"]
    for key in PARTS:
        assert memory["total"][key] == sum(part[key] for part in parts), key
    assert vector["storage"]["disk_bytes"] >= 3000 * 384 * 4
    assert vector["quantized"]["disk_bytes"] >= 3000 * 384
    assert vector["index"]["disk_bytes"] > 0 and memory["other"]["id_tracker"]["disk_bytes"] > 0
    # What was just written and searched is in memory.
    assert memory["total"]["cached_bytes"] > memory["total"]["disk_bytes"] / 2
    assert memory["payload"]["expected_cache_bytes"] == 0


def check_eta(eta):
    assert eta.keys() == {"seconds", "low_seconds", "high_seconds", "basis", "samples"}
    assert 0 <= eta["low_seconds"] <= eta["seconds"] <= eta["high_seconds"]
    assert (eta["basis"], eta["samples"] > 0) in [("prior", False), ("learnt", True)]


def test_jobs_have_an_eta_that_is_a_guess_first_and_learnt_later(new_server, words):
    server = new_server().start()
    name = "jobs"
    fill(server, name, words.rows[:5000], indexing_threshold=100)
    etas, deadline = [], time.monotonic() + 120
    while not etas:
        assert time.monotonic() < deadline
        work = ext(server, name, "jobs")
        for job in work["running"]:
            assert job["kind"] in ("indexing", "seal") and job["status"] == "optimizing"
            assert job["elapsed_sec"] >= 0 and job["rows"] <= 5000
            check_eta(job["eta"])
            etas.append(job["eta"])
            assert work["backlog"]["eta"] is not None
    assert etas[0]["basis"] == "prior"
    every = server.call("GET", "/ext/jobs").result
    assert [one["collection"] for one in every["collections"]] == [name]
    assert every["collections"][0].keys() - {"collection"} == work.keys()
    server.wait_until_idle(name, within=120)
    work = ext(server, name, "jobs")
    assert work["running"] == [] and work["queued"] == [] and work["held"] is None
    assert work["backlog"]["eta"] is None
    done = [job for job in work["completed"] if job["status"] == "done"]
    assert done and all(job["elapsed_sec"] >= 0 for job in done)
    # A job that took a moment was learnt from, and is known after a restart.
    assert any(job["elapsed_sec"] > 0.1 for job in done), done
    assert server.stop(within=10)[0] == 0
    server.start()
    body = {"hnsw_config": {"m": 24}, "optimizers_config": {"indexing_threshold": 1000000}}
    server.call("PATCH", f"/collections/{name}", body).result
    packed.upload(server, name, words.rows[5000:7000], ids=range(5000, 7000), wait=True)
    plan = {"hnsw_config": {"m": 16}, "optimizers_config": {"indexing_threshold": 100}}
    steps = server.call("POST", f"/ext/collections/{name}/plan", plan).result["steps"]
    indexing = [step for step in steps if step["kind"] == "indexing"]
    assert indexing and indexing[0]["eta"]["basis"] == "learnt", steps
    check_eta(indexing[0]["eta"])


def test_a_job_is_cancelled_by_its_id_and_an_unknown_one_is_a_404(server, name, words):
    fill(server, name, words.rows[:4000], indexing_threshold=100)
    unknown = uuid.uuid4()
    reply = server.call("DELETE", f"/ext/collections/{name}/jobs/{unknown}")
    assert reply.status == 404 and str(unknown) in reply.error
    reply = server.call("DELETE", f"/ext/collections/{name}/jobs/seven")
    assert reply.status == 400 and "job_id" in reply.error and "seven" in reply.error
    # A job that writes a segment anew can be stopped; the work is then begun again.
    server.wait_until_idle(name, within=180)
    server.call("PATCH", f"/collections/{name}", {"hnsw_config": {"m": 8}}).result
    deadline, cancelled = time.monotonic() + 120, None
    while cancelled is None:
        assert time.monotonic() < deadline
        for job in ext(server, name, "jobs")["running"]:
            path = f"/ext/collections/{name}/jobs/{job['uuid']}"
            if job["kind"] == "config mismatch" and server.call("DELETE", path).status == 200:
                cancelled = job["uuid"]
    while True:
        assert time.monotonic() < deadline
        ended = {job["uuid"]: job["status"] for job in ext(server, name, "jobs")["completed"]}
        if cancelled in ended:
            break
    assert ended[cancelled] == {"cancelled": "on request"} or ended[cancelled] == "done"


def test_a_dry_run_tells_what_other_settings_would_do_and_changes_nothing(server, name, words):
    settings = {"indexing_threshold": 100, "max_segment_size": 900, "default_segment_number": 20}
    fill(server, name, words.rows[:3000], **settings)
    before = server.wait_until_idle(name, within=180)
    path = f"/ext/collections/{name}/plan"
    now = server.call("POST", path).result
    assert now["steps"] == [] and now["eta"] is None and now["is_complete"]
    assert now["segments_before"] == now["segments_after"] == before["segments_count"]
    body = {"optimizers_config": {"default_segment_number": 1, "max_segment_size": 100000}}
    plan = server.call("POST", path, body).result
    assert [step["kind"] for step in plan["steps"]] == ["merge"]
    merge = plan["steps"][0]
    assert plan["segments_after"] < plan["segments_before"] == before["segments_count"]
    ids = {s["uuid"] for s in ext(server, name, "segments")["segments"] if s["state"] == "sealed"}
    assert {segment["uuid"] for segment in merge["segments"]} == ids
    assert merge["bytes_to_write"] == plan["bytes_to_write"] > merge["points_count"] * 384 * 4
    check_eta(merge["eta"])
    held = body | {"optimizers_config": body["optimizers_config"] | {"max_optimization_threads": 0}}
    assert "max_optimization_threads" in server.call("POST", path, held).result["held"]
    after = server.call("GET", f"/collections/{name}").result
    assert after["config"] == before["config"] and after["status"] == "green"
    # The plan is what happens once the settings are made.
    server.call("PATCH", f"/collections/{name}", body).result
    info = server.wait_until_idle(name, within=180)
    assert info["segments_count"] == plan["segments_after"]


def test_a_dry_run_of_settings_that_cannot_be_is_refused_by_name(server, name, words):
    fill(server, name, words.rows[:10])
    path = f"/ext/collections/{name}/plan"
    for body, code, parts in [
        ({"optimizers_config": {"deleted_threshold": 2.0}}, 422, ["deleted_threshold", "1"]),
        ({"hnsw_config": {"ef_construct": 1}}, 422, ["ef_construct", "4"]),
        ({"optimizers_config": 7}, 400, ["optimizers_config", "7"]),
        ("[", 400, []),
    ]:
        reply = server.call("POST", path, body)
        assert reply.status == code, (body, reply.text)
        assert all(part in reply.error for part in parts), reply.error
