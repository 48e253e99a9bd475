"""Bad input: Qdrant's code and envelope, a text that names what is wrong, nothing half-applied.

Every write is sent with wait=true and wait=false: it is refused before it is acknowledged.
"""

import json
import re

import pytest

GOOD = {"id": 1, "vector": [1, 2, 3, 4]}
U64 = 2**64


def nested(depth, leaf=1):
    for _ in range(depth):
        leaf = {"a": leaf}
    return leaf


def nested_filter(depth):
    filter_ = {"must": [{"key": "a", "match": {"value": 1}}]}
    for _ in range(depth):
        filter_ = {"must": [filter_]}
    return filter_


def point(**changes):
    return {"points": [GOOD, GOOD | {"id": 2} | changes]}


def raw_point(text):
    return '{"points": [{"id": 1, "vector": [1, 2, 3, 4]}, {"id": 2, "vector": [%s, 0, 0, 0]}]}' % text


JSON = "Format error in JSON body"
PUT, POST = "PUT", "POST"
POINTS, DELETE, PAYLOAD = "/points", "/points/delete", "/points/payload"

# What is wrong | method | path | body | status | the text must match each of these
WRITES = [
    ("three dimensions of four", PUT, POINTS, point(vector=[1, 2, 3]), 400, ["expected dim: 4, got 3"]),
    ("no dimension at all", PUT, POINTS, point(vector=[]), 400, ["expected dim: 4, got 0"]),
    ("batch, three dimensions", PUT, POINTS,
     {"batch": {"ids": [1, 2], "vectors": [[1, 2, 3, 4], [1, 2, 3]]}}, 400, ["expected dim: 4, got 3"]),
    ("batch, one vector for two ids", PUT, POINTS,
     {"batch": {"ids": [1, 2], "vectors": [[1, 2, 3, 4]]}}, {400, 422}, ["(?i)vectors", "1", "2"]),
    ("batch, one payload for two ids", PUT, POINTS,
     {"batch": {"ids": [1, 2], "vectors": [[1, 2, 3, 4]] * 2, "payloads": [{}]}}, {400, 422},
     ["(?i)payloads"]),
    ("unknown vector name", PUT, POINTS, point(vector={"head": [1, 2, 3, 4]}), 400, ["head"]),
    ("NaN", PUT, POINTS, raw_point("NaN"), 400, ["(?i)finite", "element 0", "point 2"]),
    ("Infinity", PUT, POINTS, raw_point("Infinity"), 400, ["(?i)finite", "element 0", "point 2"]),
    ("null among numbers", PUT, POINTS, raw_point("null"), 400, ["(?i)finite", "element 0", "point 2"]),
    ("more than f64 holds", PUT, POINTS, raw_point("1e400"), 400, ["(?i)number|range|finite"]),
    ("more than f32 holds", PUT, POINTS, raw_point("1e39"), 400, ["(?i)finite|infinit|range", "(?i)vector"]),
    ("less than f32 holds", PUT, POINTS, raw_point("-3.5e38"), 400, ["(?i)finite|infinit|range", "(?i)vector"]),
    ("negative id", PUT, POINTS, point(id=-7), 400, ["-7"]),
    ("fraction as id", PUT, POINTS, point(id=1.5), 400, ["1.5"]),
    ("id past u64", PUT, POINTS, point(id=U64), 400, ["18446744073709551616|1844674407370955"]),
    ("word as id", PUT, POINTS, point(id="seven"), 400, ["seven"]),
    ("short UUID", PUT, POINTS, point(id="5c56c793-69f3-4fbf-87e6"), 400, ["5c56c793-69f3-4fbf-87e6"]),
    ("null id", PUT, POINTS, point(id=None), 400, [JSON]),
    ("payload that is no object", PUT, POINTS, point(payload=[1]), 400, [JSON]),
    ("payload nested too deep", PUT, POINTS, point(payload=nested(65)), 400, ["64"]),
    ("JSON that ends early", PUT, POINTS, '{"points": [{"id": 1, "vector": [1, 2,', 400, [JSON]),
    ("JSON of the wrong type", PUT, POINTS, "[]", 400, [JSON]),
    ("an empty body", PUT, POINTS, "", 400, [JSON]),
    ("bytes that are no text", PUT, POINTS, b'{"points": "\xff\xfe"}', 400, [JSON]),
    ("JSON nested past every limit", PUT, POINTS, '{"points":' + "[" * 100_000, 400, [JSON]),
    ("neither points nor batch", PUT, POINTS, {"pts": []}, 400, ["points"]),
    ("update_filter is not served", PUT, POINTS, point() | {"update_filter": {"must": []}}, 400,
     ["update_filter"]),
    ("update_mode is not served", PUT, POINTS, point() | {"update_mode": "insert_only"}, 400,
     ["update_mode"]),
    ("shard_key is not served", PUT, POINTS, point() | {"shard_key": "eu"}, 400, ["shard_key"]),
    ("sparse vector", PUT, POINTS, point(vector={"": {"indices": [1], "values": [1.0]}}), 400, [".+"]),
    ("list of vectors", PUT, POINTS, point(vector=[[1, 2, 3, 4], [1, 2, 3, 4]]), 400, [".+"]),
    ("delete of an invalid id", POST, DELETE, {"points": [1, -7]}, 400, ["-7"]),
    ("delete of nothing named", POST, DELETE, {}, 400, ["points|filter"]),
    ("delete by an unknown condition", POST, DELETE, {"filter": {"must": [{"size": 1}]}}, 400, [".+"]),
    ("delete by an unserved condition", POST, DELETE,
     {"filter": {"must": [{"key": "t", "match": {"text": "w"}}]}}, 400, ["text"]),
    ("delete by a filter nested too deep", POST, DELETE, {"filter": nested_filter(65)}, 400, ["64"]),
    ("delete by an invalid path", POST, DELETE,
     {"filter": {"must": [{"key": "a[", "match": {"value": 1}}]}}, 400, [r"a\["]),
    ("payload for nothing named", POST, PAYLOAD, {"payload": {"a": 1}}, 400, ["points|filter"]),
    ("payload that is a number", POST, PAYLOAD, {"payload": 7, "points": [1]}, 400, [JSON]),
    ("payload, invalid key path", POST, PAYLOAD, {"payload": {}, "points": [1], "key": "a[["}, 400,
     [r"a\[\["]),
    ("payload, nested too deep", POST, PAYLOAD, {"payload": nested(65), "points": [1]}, 400, ["64"]),
    ("index of an unserved type", PUT, "/index", {"field_name": "t", "field_schema": "text"}, 400, ["text"]),
    ("index of an unknown type", PUT, "/index", {"field_name": "t", "field_schema": "colour"}, 400, ["colour"]),
    ("index of an invalid path", PUT, "/index", {"field_name": "a[", "field_schema": "keyword"}, 400,
     [r"a\["]),
]

QUERY, SCROLL, COUNT = "/points/query", "/points/scroll", "/points/count"
Q = [1, 2, 3, 4]
READS = [
    ("three dimensions of four", QUERY, {"query": [1, 2, 3]}, 400, ["expected dim: 4, got 3"]),
    ("more than f32 holds", QUERY, '{"query": [1e39, 0, 0, 0]}', 400, ["(?i)finite|infinit|range"]),
    ("NaN", QUERY, '{"query": [NaN, 0, 0, 0]}', 400, [JSON]),
    ("unknown vector name", QUERY, {"query": Q, "using": "head"}, 400, ["head"]),
    ("invalid id", QUERY, {"query": "seven"}, 400, ["seven"]),
    ("limit 0", QUERY, {"query": Q, "limit": 0}, 422, ["limit", "0", "1"]),
    ("negative limit", QUERY, {"query": Q, "limit": -1}, 400, ["-1"]),
    ("limit past u64", QUERY, {"query": Q, "limit": U64}, 400, [JSON]),
    ("limit that is text", QUERY, {"query": Q, "limit": "ten"}, 400, ["ten"]),
    ("threshold that is text", QUERY, {"query": Q, "score_threshold": "high"}, 400, ["high"]),
    ("min_count 0", QUERY, {"query": Q, "filter": {"min_should": {"conditions": [], "min_count": 0}}},
     422, ["min_count"]),
    ("filter nested too deep", QUERY, {"query": Q, "filter": nested_filter(65)}, 400, ["64"]),
    ("filter that is a list", QUERY, {"query": Q, "filter": []}, 400, [JSON]),
    ("prefetch is not served", QUERY, {"query": Q, "prefetch": [{"query": Q}]}, 400, ["prefetch"]),
    ("fusion is not served", QUERY, {"query": {"fusion": "rrf"}}, 400, ["fusion"]),
    ("recommend is not served", QUERY, {"query": {"recommend": {"positive": [1]}}}, 400, ["recommend"]),
    ("sample is not served", QUERY, {"query": {"sample": "random"}}, 400, ["sample"]),
    ("lookup_from is not served", QUERY, {"query": 1, "lookup_from": {"collection": "x"}}, 400,
     ["lookup_from"]),
    ("indexed_only is not served", QUERY, {"query": Q, "params": {"indexed_only": True}}, 400,
     ["indexed_only"]),
    ("geo_radius is not served", QUERY, {"query": Q, "filter": {"must": [
        {"key": "p", "geo_radius": {"center": {"lat": 1, "lon": 1}, "radius": 1}}]}}, 400, ["geo_radius"]),
    ("values_count below 0", SCROLL, {"filter": {"must": [
        {"key": "p", "values_count": {"gt": -1}}]}}, 400, ["values_count", "-1"]),
    ("nested without a filter", SCROLL, {"filter": {"must": [{"nested": {"key": "p"}}]}}, 400, ["nested.filter"]),
    ("a range from no moment", SCROLL, {"filter": {"must": [
        {"key": "p", "range": {"gt": "soon"}}]}}, 400, ["soon", "RFC 3339"]),
    ("order_by without an index", SCROLL, {"order_by": "a"}, 400,
     ["Wrong input: No range index for `order_by` key: `a`. Please create one to use `order_by`"]),
    ("order_by in no direction", SCROLL, {"order_by": {"key": "a", "direction": "up"}}, 400, ["direction", "up"]),
    ("scroll limit 0", SCROLL, {"limit": 0}, 422, ["limit", "0", "1"]),
    ("scroll from an invalid id", SCROLL, {"offset": "seven"}, 400, ["seven"]),
    ("count, a vector that is no name", COUNT, {"filter": {"must": [{"has_vector": 7}]}}, 400, ["has_vector"]),
    ("ids that are invalid", POINTS, {"ids": [1, "seven"]}, 400, ["seven"]),
]

VECTORS = {"size": 4, "distance": "Dot"}


def settings(**changes):
    return {"vectors": VECTORS} | changes


CREATIONS = [
    ("size 0", {"vectors": VECTORS | {"size": 0}}, {400, 422}, ["size", "0"]),
    ("size past 65536", {"vectors": VECTORS | {"size": 65537}}, {400, 422}, ["size", "65537", "65536"]),
    ("size that is negative", {"vectors": VECTORS | {"size": -4}}, 400, ["-4"]),
    ("unknown distance", {"vectors": VECTORS | {"distance": "Hamming"}}, 400, ["Hamming"]),
    ("no distance", {"vectors": {"size": 4}}, 400, ["distance"]),
    ("vector name with a slash", {"vectors": {"a/b": VECTORS}}, {400, 422}, ["a/b"]),
    ("vector name too long", {"vectors": {"v" * 201: VECTORS}}, {400, 422}, ["200"]),
    ("multivector_config is not served",
     {"vectors": VECTORS | {"multivector_config": {"comparator": "max_sim"}}}, 400, ["multivector_config"]),
    ("datatype uint8 is not served", {"vectors": VECTORS | {"datatype": "uint8"}}, 400, ["datatype", "uint8"]),
    ("sparse_vectors is not served", settings(sparse_vectors={"s": {}}), 400, ["sparse_vectors"]),
    ("ef_construct 0", settings(hnsw_config={"ef_construct": 0}), 422, ["hnsw_config.ef_construct", "0", "4"]),
    ("full_scan_threshold 1", settings(hnsw_config={"full_scan_threshold": 1}), 422,
     ["full_scan_threshold", "10"]),
    ("deleted_threshold 2", settings(optimizers_config={"deleted_threshold": 2.0}), 422,
     ["deleted_threshold"]),
    ("vacuum_min_vector_number 10", settings(optimizers_config={"vacuum_min_vector_number": 10}), 422,
     ["vacuum_min_vector_number", "100"]),
    ("max_segment_size 0", settings(optimizers_config={"max_segment_size": 0}), 422, ["max_segment_size"]),
    ("wal_capacity_mb 0", settings(wal_config={"wal_capacity_mb": 0}), 422, ["wal_capacity_mb", "1"]),
    ("a threshold that is text", settings(optimizers_config={"indexing_threshold": "no"}), 400, ["no"]),
]


KEPT = {"id": 5, "vector": [5, 6, 7, 8], "payload": {"kept": True}}


@pytest.fixture
def one_point(server):
    """A collection with one point, which every refused write must leave as it is. All tests share
    it; one that finds it changed or gone makes it anew."""
    name = "one-point"
    if not holds_only_what_is_kept(server, name):
        server.call("DELETE", f"/collections/{name}").result
        server.call("PUT", f"/collections/{name}", settings()).result
        server.call("PUT", f"/collections/{name}/points?wait=true", {"points": [KEPT]}).result
    return name


def holds_only_what_is_kept(server, name):
    info = server.call("GET", f"/collections/{name}")
    return (
        info.status == 200
        and info.result["payload_schema"] == {}
        and server.scroll_all(name) == [KEPT]
    )


def check_refusal(reply, status, patterns):
    allowed = status if isinstance(status, set) else {status}
    assert reply.status in allowed, (reply.status, reply.text[:500])
    text = reply.error
    assert len(text) < 2000, "an error text that repeats its input does not help"
    for pattern in patterns:
        assert re.search(pattern, text), f"{pattern!r} is not in {text!r}"


def check_untouched(server, name):
    assert server.scroll_all(name) == [KEPT]
    count = server.call("POST", f"/collections/{name}/points/count", {}).result["count"]
    assert count == 1
    assert server.alive()


def cases(table):
    return pytest.mark.parametrize(
        "case", [c[1:] for c in table], ids=[c[0].replace(" ", "-") for c in table]
    )


@pytest.mark.parametrize("wait", ["true", "false"])
@cases(WRITES)
def test_a_bad_write_is_refused_and_changes_nothing(server, one_point, case, wait):
    """Field report V1: a vector of the wrong size was acknowledged and dropped."""
    method, path, body, status, patterns = case
    reply = server.call(method, f"/collections/{one_point}{path}?wait={wait}", body)
    check_refusal(reply, status, patterns)
    check_untouched(server, one_point)
    assert server.call("GET", f"/collections/{one_point}").result["payload_schema"] == {}


@cases(READS)
def test_a_bad_read_is_refused(server, one_point, case):
    path, body, status, patterns = case
    check_refusal(server.call("POST", f"/collections/{one_point}{path}", body), status, patterns)
    check_untouched(server, one_point)


@cases(CREATIONS)
def test_a_bad_collection_is_refused(server, name, case):
    body, status, patterns = case
    check_refusal(server.call("PUT", f"/collections/{name}", body), status, patterns)
    assert server.call("GET", f"/collections/{name}/exists").result == {"exists": False}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/optimizations", None),
        ("GET", "/points/1", None),
        ("PUT", "/points?wait=false", {"points": [GOOD]}),
        ("PUT", "/points?wait=true", {"points": [GOOD]}),
        ("POST", "/points", {"ids": [1]}),
        ("POST", "/points/query", {"query": Q}),
        ("POST", "/points/scroll", {}),
        ("POST", "/points/count", {}),
        ("POST", "/points/delete?wait=false", {"points": [1]}),
        ("POST", "/points/payload?wait=true", {"payload": {}, "points": [1]}),
        ("PUT", "/index?wait=true", {"field_name": "a", "field_schema": "keyword"}),
        ("DELETE", "/index/a?wait=true", None),
    ],
)
def test_a_collection_that_is_not_there_is_not_found(server, method, path, body):
    reply = server.call(method, f"/collections/nowhere{path}", body)
    assert reply.status == 404
    assert reply.error == "Not found: Collection `nowhere` doesn't exist!"


@pytest.mark.parametrize("path", ["/nowhere", "/collections/x/points/nonsense/more"])
def test_a_path_that_is_not_served_is_not_found(server, path):
    assert server.call("POST", path, {}).status in (404, 405)


@pytest.mark.parametrize("query", ["wait=maybe", "ordering=sideways"])
def test_a_bad_query_parameter_is_refused(server, one_point, query):
    reply = server.call("PUT", f"/collections/{one_point}/points?{query}", {"points": [GOOD]})
    check_refusal(reply, 400, [query.split("=")[1]])
    check_untouched(server, one_point)


def test_a_body_over_32_mb_is_refused_with_the_limit(server, one_point):
    body = '{"points": [{"id": 1, "vector": [1, 2, 3, 4], "payload": {"a": "%s"}}]}' % ("x" * (33 << 20))
    reply = server.call("PUT", f"/collections/{one_point}/points?wait=true", body)
    check_refusal(reply, 400, ["32|33554432"])
    check_untouched(server, one_point)


def test_a_body_just_under_32_mb_is_served(server, name):
    """Most of it is blank, which is quick to read: the limit is one of bytes. The rest is one payload of
    a length that nobody has to split."""
    server.call("PUT", f"/collections/{name}", settings()).result
    long = "x" * (2 << 20)
    body = json.dumps({"points": [GOOD | {"payload": {"a": long}}]})
    body += " " * ((32 << 20) - 1 - len(body))
    server.call("PUT", f"/collections/{name}/points?wait=true", body).result
    found = server.call("GET", f"/collections/{name}/points/1").result
    assert found["payload"] == {"a": long}


def test_nesting_up_to_the_limit_is_served(server, name):
    server.call("PUT", f"/collections/{name}", settings()).result
    payload = nested(60)
    body = {"points": [GOOD | {"payload": payload}]}
    server.call("PUT", f"/collections/{name}/points?wait=true", body).result
    assert server.call("GET", f"/collections/{name}/points/1").result["payload"] == payload
    question = {"query": Q, "filter": nested_filter(60)}
    server.call("POST", f"/collections/{name}/points/query", question).result


@pytest.mark.parametrize(
    "written",
    ["a%2Fb", "..%2Fx", "%2e%2e", "..", ".", "%2e", "a%00b", "a%3Ab", "a%2Ab", "a%5Cb", "a%22b",
     "a%3Cb", "a%3Eb", "a%7Cb", "a%3Fb", "a%1Fb", "n" * 256, "%ff%fe", "..%5C..%5Cx", "%2Fetc%2Fx"],
)
def test_a_name_that_could_leave_the_folder_is_refused(server, written):
    """Field report S1."""
    before = server.call("GET", "/collections").result
    outside = sorted(p.name for p in server.folder.iterdir())
    for body in (settings(), settings(hnsw_config={"m": 8})):
        reply = server.call("PUT", f"/collections/{written}", body)
        assert 400 <= reply.status < 500, (reply.status, reply.text)
    reply = server.call("DELETE", f"/collections/{written}")
    assert 400 <= reply.status < 500 or reply.result is False
    assert server.call("GET", "/collections").result == before
    assert sorted(p.name for p in server.folder.iterdir()) == outside


@pytest.mark.parametrize("written", ["n" * 255, "caf%C3%A9", "with%20space", "dots.in.it", "-_~"])
def test_an_unusual_but_harmless_name_is_served(server, written):
    path = f"/collections/{written}"
    assert server.call("PUT", path, settings()).result is True
    try:
        server.call("PUT", f"{path}/points?wait=true", {"points": [GOOD]}).result
        assert server.call("GET", path).result["points_count"] == 1
    finally:
        assert server.call("DELETE", path).result is True


def test_a_named_vector_collection_refuses_unknown_and_unnamed_vectors(server, name):
    body = {"vectors": {"a": VECTORS, "b": VECTORS | {"size": 2}}}
    server.call("PUT", f"/collections/{name}", body).result
    path = f"/collections/{name}/points?wait=false"
    bad = [
        ({"a": Q, "c": Q}, ["c"]),
        ({"a": Q, "b": Q}, ["expected dim: 2, got 4"]),
        (Q, [".+"]),
    ]
    for vector, patterns in bad:
        reply = server.call("PUT", path, {"points": [{"id": 1, "vector": vector}]})
        check_refusal(reply, 400, patterns)
    reply = server.call("POST", f"/collections/{name}/points/query", {"query": Q})
    check_refusal(reply, 400, [".+"])
    assert server.scroll_all(name) == []
