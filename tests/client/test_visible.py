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
    for path in ["/ext/collections/none/segments"]:
        reply = server.call("GET", path)
        assert reply.status == 404 and "none" in reply.error


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
