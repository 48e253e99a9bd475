"""Searches against exact answers that numpy computes from the same vectors."""

import numpy as np
import pytest
from qdrant_client import models

import flatwater_data
import packed
import recall

METRICS = ["Cosine", "Dot", "Euclid", "Manhattan"]
LARGER_IS_BETTER = {"Cosine", "Dot"}
EXACT = models.SearchParams(exact=True)


def fill(server, name, rows, metric):
    body = {"vectors": {"size": rows.shape[1], "distance": metric}}
    server.call("PUT", f"/collections/{name}", body).result
    packed.upload(server, name, rows)


def best(rows, query, metric, k):
    """Ids of the best k and all scores, as numpy sees them."""
    scores = flatwater_data.scores(rows, query, metric)
    order = np.lexsort((np.arange(len(rows)), -scores if metric in LARGER_IS_BETTER else scores))
    return order[:k], scores


def shapes(words):
    """Kinds of data: real unit vectors, few dimensions, off the origin, uneven lengths."""
    random = np.random.default_rng(11)
    return {
        "real": words.rows[:1500],
        "three dimensions": random.normal(size=(800, 3)).astype(np.float32),
        "offset": (words.rows[:800, :96] + 5).astype(np.float32),
        "uneven": (words.rows[:800, :70] * random.lognormal(0, 1, (800, 1))).astype(np.float32),
    }


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["real", "three dimensions", "offset", "uneven"])
def test_every_metric_agrees_with_numpy_on_every_kind_of_data(server, client, name, words, metric, kind):
    rows = shapes(words)[kind]
    fill(server, name, rows, metric)
    hits = total = 0
    for query in rows[::97] + np.float32(1e-3):
        truth, scores = best(rows, query, metric, 10)
        found = client.query_points(name, query=query, limit=10, search_params=EXACT).points
        answer = [p.score for p in found]
        # Ids may differ only where f32 cannot tell the scores apart.
        assert answer == pytest.approx(scores[truth], rel=1e-4, abs=2e-4)
        assert [p.score for p in found] == pytest.approx(
            [scores[p.id] for p in found], rel=1e-4, abs=2e-4
        )
        usual = client.query_points(name, query=query, limit=10).points
        for point in usual:
            assert point.score == pytest.approx(scores[point.id], rel=1e-4, abs=2e-4)
        hits += len({p.id for p in usual} & set(truth.tolist()))
        total += len(truth)
    assert hits / total >= 0.98, f"recall {hits / total:.3f}"


def test_a_search_by_id_leaves_the_point_itself_out(server, client, name, words):
    rows = words.rows[:600]
    fill(server, name, rows, "Cosine")
    for point_id in (0, 17, 599):
        by_vector = client.query_points(
            name, query=rows[point_id], limit=11, search_params=EXACT
        ).points
        by_id = client.query_points(name, query=point_id, limit=10, search_params=EXACT).points
        assert by_vector[0].id == point_id
        assert [p.id for p in by_id] == [p.id for p in by_vector[1:]]


def test_pages_are_disjoint_and_ties_go_by_id(server, client, name):
    """Field report C14: pages repeated or skipped points of equal score."""
    rows = np.outer(np.ones(25), [0.1, 0.05, 0.033, 0.025]).astype(np.float32)
    fill(server, name, rows, "Cosine")
    pages = [
        [p.id for p in client.query_points(name, query=rows[0], limit=10, offset=o).points]
        for o in (0, 10, 20, 30)
    ]
    assert pages == [[*range(10)], [*range(10, 20)], [*range(20, 25)], []]


def test_pages_continue_where_the_last_one_ended(server, client, name, words):
    fill(server, name, words.rows[:900], "Cosine")
    query = words.queries[3]
    whole = [p.id for p in client.query_points(name, query=query, limit=90, search_params=EXACT).points]
    pages = []
    for offset in range(0, 90, 30):
        page = client.query_points(
            name, query=query, limit=30, offset=offset, search_params=EXACT
        ).points
        pages += [p.id for p in page]
    assert pages == whole


@pytest.mark.parametrize("metric", METRICS)
def test_score_threshold_is_strict(server, client, name, words, metric):
    """Field report C23: only what is strictly better passes."""
    rows = words.rows[:500]
    fill(server, name, rows, metric)
    query = words.queries[1]

    def scores_under(threshold):
        found = client.query_points(
            name, query=query, limit=500, score_threshold=threshold, search_params=EXACT
        )
        return [p.score for p in found.points]

    everything = scores_under(None)
    assert len(everything) == 500
    limit = everything[20]
    better = [s for s in everything if (s > limit if metric in LARGER_IS_BETTER else s < limit)]
    assert scores_under(limit) == better
    beyond = 2.0 if metric in LARGER_IS_BETTER else -0.5
    assert scores_under(beyond) == []


def test_a_score_equal_to_the_threshold_does_not_pass(server, client, name):
    fill(server, name, np.eye(4, dtype=np.float32), "Cosine")
    query = [1, 0, 0, 0]
    assert client.query_points(name, query=query, score_threshold=1.0).points == []
    assert [p.id for p in client.query_points(name, query=query, score_threshold=0.999).points] == [0]


def test_named_vectors_are_searched_one_by_one(client, name, words):
    count = 200
    rows = words.rows[:count]
    client.create_collection(
        name,
        vectors_config={
            "whole": models.VectorParams(size=384, distance=models.Distance.COSINE),
            "part": models.VectorParams(size=20, distance=models.Distance.EUCLID),
        },
    )

    def vectors(i):
        both = {"whole": rows[i].tolist(), "part": rows[i, :20].tolist()}
        return both if i % 4 else {"whole": both["whole"]}

    client.upsert(name, [models.PointStruct(id=i, vector=vectors(i)) for i in range(count)])
    query = words.queries[5]
    truth, scores = best(rows, query, "Cosine", 10)
    found = client.query_points(name, query=query, using="whole", search_params=EXACT).points
    recall.assert_same_ranking([p.id for p in found], truth.tolist(), scores)
    has_part = np.array([i for i in range(count) if i % 4])
    truth, _ = best(rows[has_part, :20], query[:20], "Euclid", 10)
    scores = flatwater_data.scores(rows[:, :20], query[:20], "Euclid")
    found = client.query_points(
        name, query=query[:20], using="part", search_params=EXACT, with_vectors=["part"]
    ).points
    recall.assert_same_ranking([p.id for p in found], has_part[truth].tolist(), scores)
    assert all(set(p.vector) == {"part"} for p in found)
    everything = client.query_points(name, query=query[:20], using="part", limit=1000).points
    assert {p.id for p in everything} == set(has_part.tolist())
    by_id = client.query_points(name, query=1, using="part", limit=3, search_params=EXACT).points
    assert by_id[0].id != 1 and len(by_id) == 3
    record = client.retrieve(name, [4, 5], with_vectors=True)
    assert set(record[0].vector) == {"whole"} and set(record[1].vector) == {"whole", "part"}


def test_the_shortest_vectors_still_have_a_direction(server, client, name):
    """Field report C19: very short vectors were taken for zero."""
    rows = np.array([[1, 0], [1e-6, 0], [0, 1e-12], [0, 0]], np.float32)
    fill(server, name, rows, "Cosine")
    for query in ([1, 0], [1e-6, 0]):
        found = {p.id: p.score for p in client.query_points(name, query=query).points}
        assert found == pytest.approx({0: 1, 1: 1, 2: 0, 3: 0}, abs=1e-6)


@pytest.mark.parametrize("metric", METRICS)
def test_zero_vectors_are_stored_and_scored(server, name, metric):
    """Field report C20: no null and no NaN in an answer."""
    fill(server, name, np.array([[0, 0], [1, 1]], np.float32), metric)
    for query in ([0, 0], [1, 1]):
        reply = server.call("POST", f"/collections/{name}/points/query", {"query": query})
        points = reply.result["points"]
        assert len(points) == 2 and all(isinstance(p["score"], (int, float)) for p in points)
        assert "NaN" not in reply.text


@pytest.mark.parametrize("limit", [1000, 2**20 + 1, 2**40, 2**63, 2**64 - 1])
def test_a_limit_of_any_size_returns_all_there_is(server, name, words, limit):
    """Field report V5: a huge limit must not be allocated."""
    fill(server, name, words.rows[:50], "Cosine")
    query = {"query": words.queries[0].tolist(), "limit": limit}
    base = f"/collections/{name}/points"
    assert len(server.call("POST", f"{base}/query", query).result["points"]) == 50
    exact = query | {"params": {"exact": True}}
    assert len(server.call("POST", f"{base}/query", exact).result["points"]) == 50
    assert len(server.call("POST", f"{base}/scroll", {"limit": limit}).result["points"]) == 50
    past = query | {"limit": 10, "offset": limit}
    assert server.call("POST", f"{base}/query", past).result["points"] == []
    both = query | {"offset": limit}
    assert server.call("POST", f"{base}/query", both).result["points"] == []
    wide = query | {"limit": 10, "params": {"hnsw_ef": limit}}
    assert len(server.call("POST", f"{base}/query", wide).result["points"]) == 10


def test_huge_numbers_anywhere_else_are_served_or_refused(server, name, words):
    """Field report V5: limits of batches, ids, and combinations of min_should ended the process."""
    fill(server, name, words.rows[:20], "Cosine")
    largest, vector = 2**64 - 1, words.queries[0].tolist()
    base = f"/collections/{name}/points"
    batch = {"searches": [{"query": vector, "limit": largest, "offset": 1}] * 3}
    answers = server.call("POST", f"{base}/query/batch", batch).result
    assert [len(a["points"]) for a in answers] == [19] * 3
    older = {"vector": vector, "limit": largest, "params": {"hnsw_ef": largest}}
    assert len(server.call("POST", f"{base}/search", older).result) == 20
    assert [p["id"] for p in server.call("POST", base, {"ids": [largest, 3]}).result] == [3]
    many = [{"has_id": [i]} for i in range(70)]
    for least, wanted in ((1, 20), (2, 0), (35, 0), (largest, 0)):
        body = {"filter": {"min_should": {"conditions": many, "min_count": least}}}
        assert server.call("POST", f"{base}/count", body).result["count"] == wanted, least
    for path, key in (("/query/groups", "query"), ("/search/groups", "vector")):
        groups = {key: vector, "group_by": "a", "limit": largest, "group_size": largest}
        assert 200 <= server.call("POST", f"{base}{path}", groups).status < 500


def test_deleting_the_nearest_leaves_the_next_nearest(server, client, name, words):
    """Field report C26: an answer full of dead points came back empty."""
    rows = words.rows[:1200]
    fill(server, name, rows, "Cosine")
    query = words.queries[7]
    order, _ = best(rows, query, "Cosine", 1200)
    client.delete(name, order[:200].tolist())
    found = [p.id for p in client.query_points(name, query=query, limit=10).points]
    assert len(found) == 10 and not set(found) & set(order[:200].tolist())
    assert len(set(found) & set(order[200:210].tolist())) >= 9


def test_the_same_question_gets_the_same_answer(server, client, name, words):
    fill(server, name, words.rows[:500], "Cosine")
    answers = {
        tuple(
            (p.id, p.score)
            for p in client.query_points(
                name, query=words.queries[2], limit=50, search_params=EXACT
            ).points
        )
        for _ in range(5)
    }
    assert len(answers) == 1


def test_a_search_by_the_id_of_no_point_is_not_found(server, name, words):
    fill(server, name, words.rows[:5], "Cosine")
    reply = server.call("POST", f"/collections/{name}/points/query", {"query": 999})
    assert reply.status == 404 and "999" in reply.error
