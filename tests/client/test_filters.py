"""Filters with and without a field index, against their definition in `payload_filters`."""

import json
import random
import uuid

import numpy as np
import pytest
from qdrant_client import models

import flatwater_data
import packed
import recall
from payload_filters import matches, moment

COUNT = 1200
INDEXES = {
    "pos": "keyword",
    "lexname": "keyword",
    "tags": "keyword",
    "gloss_len": "integer",
    "place.floor": "integer",
    "numbers": "integer",
    "ratio": "float",
    "even": "bool",
    "at": "datetime",
    "uid": "uuid",
    "place.rooms[].n": "integer",
}


def decorated(payload, i):
    """A real payload with fields of every shape: missing, null, empty, arrays, nested."""
    extra = {
        "tags": [[], ["x"], ["x", "y"], None, [None, "z"]][i % 5],
        "numbers": [[1, 2.5, -3], [], 7, "7", True][i % 5],
        "place": {"floor": i % 9 - 4, "rooms": [{"n": i % 3}, {"n": i % 4, "beds": []}]},
        "even": i % 2 == 0,
        "ratio": (i % 40) / 8 - 2,
        "at": [f"2024-02-{i % 28 + 1:02}T12:00:00+02:00", [f"2024-03-01 {i % 24:02}:30:00", 7], "soon"][i % 3],
        "uid": str(uuid.UUID(int=i % 50)),
    }
    missing = {0: "tags", 1: "numbers", 2: "place", 3: "even"}.get(i % 11)
    extra.pop(missing, None)
    return payload | extra


@pytest.fixture(scope="module")
def filled(shared_server, shared_clients, words):
    """One collection for all tests here; each asks before and after the indexes are made."""
    client, name = shared_clients[0], "filters"
    body = {"vectors": {"size": 384, "distance": "Cosine"}}
    shared_server.call("PUT", f"/collections/{name}", body).result
    payloads = [decorated(words.payloads[i], i) for i in range(COUNT)]
    packed.upload(shared_server, name, words.rows[:COUNT], payloads)
    yield client, name, payloads
    client.delete_collection(name)


@pytest.fixture(scope="module", params=["unindexed", "indexed"])
def collection(request, filled):
    client, name, payloads = filled
    for field, kind in INDEXES.items():
        if request.param == "indexed":
            client.create_payload_index(name, field, field_schema=kind, wait=True)
        else:
            client.delete_payload_index(name, field, wait=True)
    return filled


DAYS = ["2024-02-05", "2024-02-14T10:00:00Z", "2024-02-20T12:00:00.5+01:00", "2024-03-01T11:30:00Z"]


def random_condition(rng, payloads, depth):
    payload = rng.choice(payloads)
    number = rng.choice([-3, -1.5, 0, 1, 2.5, 7, 60, 1e300, -1e300])
    kinds = [
        lambda: {"key": "pos", "match": {"value": payload["pos"]}},
        lambda: {"key": "lexname", "match": {"any": [p["lexname"] for p in rng.sample(payloads, 3)]}},
        lambda: {"key": "lexname", "match": {"except": [payload["lexname"]]}},
        lambda: {"key": "tags", "match": {"value": rng.choice("xyz")}},
        lambda: {"key": "numbers", "match": {"any": [1, rng.choice([7, -3])]}},
        lambda: {"key": "even", "match": {"value": rng.choice([True, False])}},
        lambda: {"key": "place.rooms[].n", "match": {"value": rng.randrange(4)}},
        lambda: {"key": "gloss_len", "match": {"except": [payload["gloss_len"], 40]}},
        lambda: {"key": "gloss_len", "range": {"gte": payload["gloss_len"] - 9, "lt": payload["gloss_len"] + 9.5}},
        lambda: {"key": rng.choice(["place.floor", "numbers", "ratio"]), "range": {rng.choice(["lt", "lte", "gt", "gte"]): number}},
        lambda: {"key": "ratio", "range": {"gt": payload.get("ratio", 0) - 1, "lte": payload.get("ratio", 0)}},
        lambda: {"key": "at", "range": {rng.choice(["gte", "lt"]): rng.choice(DAYS)}},
        lambda: {"key": "uid", "match": {"any": [str(uuid.UUID(int=rng.randrange(60))) for _ in range(3)]}},
        lambda: {"key": "uid", "match": {"except": [payload["uid"]]}},
        lambda: {"key": rng.choice(["tags", "numbers", "place.rooms[].n", "none"]),
                 "values_count": {rng.choice(["lt", "lte", "gt", "gte"]): rng.randrange(4)}},
        lambda: {"nested": {"key": rng.choice(["place.rooms", "place.rooms[]"]), "filter": {
            rng.choice(["must", "must_not", "should"]): [
                {"key": "n", "match": {"value": rng.randrange(4)}},
                {"key": "beds", "is_empty": rng.choice([True, False])},
            ]}}},
        lambda: {"has_vector": rng.choice(["", "head"])},
        lambda: {"has_id": [rng.randrange(COUNT + 50) for _ in range(rng.randrange(60))]},
        lambda: {"is_empty": {"key": rng.choice(["tags", "numbers", "place.rooms[].beds", "none"])}},
        lambda: {"is_null": {"key": rng.choice(["tags", "numbers", "even"])}},
        lambda: {"key": rng.choice(["tags", "place"]), "is_empty": rng.choice([True, False])},
        lambda: {"key": rng.choice(["tags", "numbers"]), "is_null": rng.choice([True, False])},
    ]
    if depth:
        kinds += [lambda: random_filter(rng, payloads, depth - 1)] * 3
    return rng.choice(kinds)()


def random_filter(rng, payloads, depth=2):
    clauses = rng.sample(["must", "should", "must_not", "min_should"], rng.randrange(1, 4))
    made = {}
    for clause in clauses:
        conditions = [random_condition(rng, payloads, depth) for _ in range(rng.randrange(1, 4))]
        if clause == "min_should":
            made[clause] = {"conditions": conditions, "min_count": rng.randrange(1, 4)}
        else:
            made[clause] = conditions
    return made


EXPECTED = {}  # What a filter selects, once for both turns.


def expected(payloads, filter_):
    key = json.dumps(filter_)
    if key not in EXPECTED:
        EXPECTED[key] = [i for i, payload in enumerate(payloads) if matches(i, payload, filter_)]
    return EXPECTED[key]


def test_random_filters_select_what_their_definition_says(server, collection, module_seed):
    seed = f"{module_seed}/select"
    _, name, payloads = collection
    rng = random.Random(seed)
    base = f"/collections/{name}/points"
    some = 0
    for _ in range(50):
        filter_ = random_filter(rng, payloads)
        wanted = expected(payloads, filter_)
        some += 0 < len(wanted) < COUNT
        page = {"filter": filter_, "limit": COUNT, "with_payload": False}
        found = [p["id"] for p in server.call("POST", f"{base}/scroll", page).result["points"]]
        assert found == wanted, (seed, filter_)
        for exact in (True, False):
            question = {"filter": filter_, "exact": exact}
            assert server.call("POST", f"{base}/count", question).result["count"] == len(wanted), filter_
    assert some > 12, "the filters are too dull to prove anything"


def test_filtered_searches_are_exact_when_asked_and_complete_always(
    server, collection, words, module_seed
):
    """Field report C25: never fewer results than min(limit, matches), recall at defaults."""
    seed = f"{module_seed}/search"
    _, name, payloads = collection
    rng = random.Random(seed)
    hits = total = 0
    for turn in range(25):
        filter_, query = random_filter(rng, payloads, depth=1), words.queries[turn]
        keep = np.zeros(COUNT, bool)
        keep[expected(payloads, filter_)] = True
        truth = flatwater_data.exact(words.rows[:COUNT], query[None], 10, keep)[0] if keep.any() else []
        question = {"query": query.tolist(), "filter": filter_, "limit": 10}
        found = search(server, name, question | {"params": {"exact": True}})
        scores = flatwater_data.scores(words.rows[:COUNT], query)
        recall.assert_same_ranking(found, list(truth), scores)
        assert keep[found].all(), (seed, filter_)
        usual = search(server, name, question)
        assert len(usual) == len(truth) and keep[usual].all(), (seed, filter_)
        hits += len(set(usual) & set(found))
        total += len(found)
        matching = int(keep.sum())
        everything = search(server, name, question | {"limit": max(matching, 1)})
        assert sorted(everything) == np.flatnonzero(keep).tolist(), (seed, filter_)
    assert hits >= 0.95 * total


def search(server, name, question):
    reply = server.call("POST", f"/collections/{name}/points/query", question)
    return [p["id"] for p in reply.result["points"]]


def count(server, name, **filter_):
    body = {"filter": filter_}
    return server.call("POST", f"/collections/{name}/points/count", body).result["count"]


def ids(server, name, **filter_):
    body = {"filter": filter_, "limit": 10_000}
    reply = server.call("POST", f"/collections/{name}/points/scroll", body)
    return [p["id"] for p in reply.result["points"]]


@pytest.mark.parametrize("indexed", [False, True])
def test_whole_numbers_compare_with_fractions(server, client, name, indexed):
    """Field report C1: after an integer index a bound of 1.5 let 1 pass."""
    tiny = models.VectorParams(size=1, distance=models.Distance.DOT)
    client.create_collection(name, vectors_config=tiny)
    prices = {1: 1, 2: 2, 3: -1, 4: -2, 5: 2**53 + 1, 6: -3.4028234663852886e38}
    if indexed:
        client.create_payload_index(name, "price", field_schema="integer", wait=True)
    client.upsert(
        name,
        [models.PointStruct(id=i, vector=[1], payload={"price": p}) for i, p in prices.items()],
    )
    for bound in (1.5, -1.5, 1, 1e300, -1e300, -3.4028234663852886e38, 0.0):
        for test in ("lt", "lte", "gt", "gte"):
            condition = {"key": "price", "range": {test: bound}}
            wanted = [i for i, p in prices.items() if matches(i, {"price": p}, {"must": [condition]})]
            assert ids(server, name, must=[condition]) == wanted, condition


def test_points_come_in_the_order_of_a_field(server, client, collection, seed):
    """By floats and by moments; the whole list, from a value on, and backwards."""
    _, name, payloads = collection
    if "ratio" not in client.get_collection(name).payload_schema:
        body = {"order_by": "ratio"}
        refused = server.call("POST", f"/collections/{name}/points/scroll", body)
        assert refused.status == 400 and "No range index for `order_by` key: `ratio`" in refused.text
        return
    rng = random.Random(seed)
    micros = lambda text: round(moment(text).timestamp() * 1_000_000)  # noqa: E731
    values = {
        "ratio": [(p["ratio"], i) for i, p in enumerate(payloads) if "ratio" in p],
        "at": [
            (micros(text), i)
            for i, p in enumerate(payloads)
            for text in (p["at"] if isinstance(p["at"], list) else [p["at"]])
            if isinstance(text, str) and text != "soon"
        ],
    }
    starts = {"ratio": [None, 0.125], "at": [None, "2024-02-14T10:00:00Z"]}
    for key, pairs in values.items():
        for start in starts[key]:
            for direction in ("asc", "desc"):
                first = start if key == "ratio" or start is None else micros(start)
                wanted = sorted(pairs, reverse=direction == "desc")
                if first is not None:
                    wanted = [p for p in wanted if (p[0] <= first if direction == "desc" else p[0] >= first)]
                limit = rng.choice([7, COUNT * 2])
                order = {"key": key, "direction": direction, "start_from": start}
                body = {"order_by": order, "limit": limit, "with_payload": False}
                result = server.call("POST", f"/collections/{name}/points/scroll", body).result
                assert result["next_page_offset"] is None
                found = [(p["order_value"], p["id"]) for p in result["points"]]
                assert found == wanted[:limit], (seed, order)


def test_an_index_is_made_while_points_are_written_and_read(server, client, name):
    tiny = models.VectorParams(size=1, distance=models.Distance.DOT)
    client.create_collection(name, vectors_config=tiny)

    def struct(i):
        return models.PointStruct(id=i, vector=[1], payload={"n": i % 10})

    client.upsert(name, [struct(i) for i in range(5000)])
    client.create_payload_index(name, "n", field_schema="integer", wait=False)
    held = 5000
    for first in range(5000, 5500, 25):
        client.upsert(name, [struct(i) for i in range(first, first + 25)], wait=False)
        held += 25
        assert count(server, name, must=[{"key": "n", "match": {"value": 3}}]) == -(-(held - 3) // 10)
    client.create_payload_index(name, "n", field_schema="integer", wait=True)
    assert client.get_collection(name).payload_schema["n"].points == held
    client.create_payload_index(name, "n", field_schema="float", wait=True)
    shown = client.get_collection(name).payload_schema["n"]
    assert (shown.data_type, shown.points) == ("float", held)


def test_lists_of_no_values_mean_none_and_all(server, collection):
    """Field report C5."""
    _, name, payloads = collection
    for key in ("gloss_len", "pos"):
        assert count(server, name, must=[{"key": key, "match": {"any": []}}]) == 0
        assert count(server, name, must=[{"key": key, "match": {"except": []}}]) == COUNT
    absent = {"key": "no-such-field", "match": {"except": []}}
    assert count(server, name, must=[absent]) == 0


def test_min_should_of_nothing_matches_nothing(server, collection):
    """Field report C6."""
    _, name, _ = collection
    assert count(server, name, min_should={"conditions": [], "min_count": 1}) == 0


def test_an_empty_filter_matches_everything(server, collection):
    _, name, _ = collection
    assert count(server, name) == COUNT
    assert count(server, name, must=[], should=[], must_not=[]) == COUNT


def test_a_clause_may_be_one_condition_without_a_list(server, collection):
    _, name, payloads = collection
    verb = {"key": "pos", "match": {"value": "v"}}
    assert count(server, name, must=verb) == count(server, name, must=[verb]) > 0


@pytest.mark.parametrize("indexed", [False, True])
def test_null_and_empty_agree_in_all_spellings(server, client, name, indexed):
    """Field report C8."""
    tiny = models.VectorParams(size=1, distance=models.Distance.DOT)
    client.create_collection(name, vectors_config=tiny)
    if indexed:
        client.create_payload_index(name, "s", field_schema="keyword", wait=True)
    payloads = {1: {"s": None}, 2: {"s": [None, "a"]}, 3: {"s": []}, 4: {}, 5: {"s": "a"}}
    client.upsert(
        name, [models.PointStruct(id=i, vector=[1], payload=p) for i, p in payloads.items()]
    )
    assert ids(server, name, must=[{"is_null": {"key": "s"}}]) == [1, 2]
    assert ids(server, name, must=[{"key": "s", "is_null": True}]) == [1, 2]
    assert ids(server, name, must=[{"is_empty": {"key": "s"}}]) == [1, 3, 4]
    assert ids(server, name, must=[{"key": "s", "is_empty": True}]) == [1, 3, 4]
    assert ids(server, name, must=[{"key": "s", "is_null": False}]) == [3, 4, 5]
    assert ids(server, name, must=[{"key": "s", "is_empty": False}]) == [2, 5]


@pytest.mark.parametrize("key", ["tb_9.6.11", "a/b", "rdfs:subClassOf", "@id", "with space", "\U0001f600"])
def test_any_key_can_be_named_in_quotes(server, client, name, key):
    """Field report C29."""
    tiny = models.VectorParams(size=1, distance=models.Distance.DOT)
    client.create_collection(name, vectors_config=tiny)
    client.upsert(
        name,
        [models.PointStruct(id=i, vector=[1], payload={key: i, "k": {key: {"v": i}}}) for i in (1, 2)],
    )
    quoted = f'"{key}"'
    assert ids(server, name, must=[{"key": quoted, "match": {"value": 2}}]) == [2]
    assert ids(server, name, must=[{"key": f"k.{quoted}.v", "match": {"value": 1}}]) == [1]
    client.create_payload_index(name, quoted, field_schema="integer", wait=True)
    assert ids(server, name, must=[{"key": quoted, "match": {"value": 2}}]) == [2]
    client.set_payload(name, {"in": 3}, points=[1], key=f"k.{quoted}")
    assert client.retrieve(name, [1])[0].payload["k"][key] == {"v": 1, "in": 3}


def test_an_index_is_shown_follows_the_data_and_can_go_again(client, name):
    """Field reports C34, D10: what the index counts is what the points hold."""
    tiny = models.VectorParams(size=1, distance=models.Distance.DOT)
    client.create_collection(name, vectors_config=tiny)

    def struct(i):
        return models.PointStruct(id=i, vector=[1], payload={"city": f"c{i % 4}"} if i % 3 else {})

    client.upsert(name, [struct(i) for i in range(60)])
    client.create_payload_index(name, "city", field_schema=models.PayloadSchemaType.KEYWORD, wait=True)
    client.create_payload_index(
        name, "n", field_schema=models.IntegerIndexParams(type="integer", lookup=True, range=True)
    )
    schema = client.get_collection(name).payload_schema
    assert (schema["city"].data_type, schema["city"].points) == ("keyword", 40)
    assert schema["n"].data_type == "integer" and schema["n"].params.lookup is True
    client.delete(name, [i for i in range(30)])
    client.upsert(name, [struct(i) for i in range(100, 110)])
    client.set_payload(name, {"city": "c9"}, points=[30, 33])
    live = [i for i in (*range(30, 60), *range(100, 110))]
    cities = {i: "c9" if i in (30, 33) else struct(i).payload.get("city") for i in live}
    assert client.get_collection(name).payload_schema["city"].points == sum(
        c is not None for c in cities.values()
    )
    for city in ("c0", "c1", "c2", "c3", "c9"):
        chosen = models.FieldCondition(key="city", match=models.MatchValue(value=city))
        found = client.scroll(name, scroll_filter=models.Filter(must=[chosen]), limit=100)[0]
        assert [p.id for p in found] == [i for i in live if cities[i] == city]
    client.delete_payload_index(name, "city", wait=True)
    assert "city" not in client.get_collection(name).payload_schema
