"""Clients that write without pause and know what every one of their points must hold.

Each writer owns a range of ids, so the order of the changes to a point is the order in which its
writer sent them. An operation is `pending` from before it is sent until its answer is there: if the
server dies in between it may have happened or not, but only as a whole.
"""

import random
import threading

import numpy as np
from qdrant_client import models
from qdrant_client.http.exceptions import ResponseHandlingException

SPAN = 300
TEXT, TINY = "text", "tiny"


def vectors_of(rows, point_id, version):
    """The vectors of one version of a point; `tiny` says whose they are."""
    row = (point_id * 31 + version * 7919) % len(rows)
    return {TEXT: rows[row].tolist(), TINY: [float(point_id), float(version), 1.0, 0.5]}


def create(client, name, **settings):
    client.create_collection(
        name,
        vectors_config={
            TEXT: models.VectorParams(size=384, distance=models.Distance.DOT),
            TINY: models.VectorParams(size=4, distance=models.Distance.EUCLID),
        },
        **settings,
    )


def bulk(client, collection, ids, rows):
    """Uploads many points with a text vector and no payload, without waiting for the disk."""
    vectors = {TEXT: rows[: len(ids)]}
    client.upload_collection(collection, vectors, ids=ids, batch_size=500, wait=False)


def same_point(rows, point_id, payload, point):
    """Whether a point that was read back is exactly this version, value by value."""
    if point is None or payload is None:
        return point is None and payload is None
    if point["payload"] != payload:
        return False
    wanted = vectors_of(rows, point_id, payload["version"])
    found = point["vector"]
    return found.keys() == wanted.keys() and all(
        np.array_equal(np.float32(found[name]), np.float32(wanted[name])) for name in wanted
    )


class Writer(threading.Thread):
    """Upserts, deletes and changes payloads of its own ids until it is told to stop or cut off."""

    def __init__(self, server, collection, number, rows, seed, state=None):
        super().__init__(name=f"writer-{number}", daemon=True)
        self.client = server.client()
        self.collection = collection
        self.number = number
        self.rows = rows
        self.random = random.Random(f"{seed}/{number}")
        self.ids = range(number * SPAN, (number + 1) * SPAN)
        self.state = dict(state or {})  # id -> payload of the version that is there
        self.pending = {}  # id -> payload after the operation in flight, None = deleted
        self.acknowledged = 0
        self.refusal = None
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            self.pending, send = self.choose()
            try:
                send(self.random.random() < 0.5)
            except ResponseHandlingException:
                return  # Cut off: whether the operation happened is for the check to find out.
            except Exception as refusal:  # noqa: BLE001 - reported by the test
                self.refusal = refusal
                return
            self.apply()

    def apply(self):
        for point_id, payload in self.pending.items():
            self.state.pop(point_id, None)
            if payload is not None:
                self.state[point_id] = payload
        self.pending = {}
        self.acknowledged += 1

    def choose(self):
        """The next operation: what its points hold afterwards, and the call that sends it."""
        operations = [self.upsert, self.delete, self.delete_matching, self.mark, self.mark_matching]
        return self.random.choices(operations, weights=[60, 13, 4, 15, 8])[0]()

    def some_ids(self):
        return self.random.sample(self.ids, self.random.randrange(1, 9))

    def upsert(self):
        ids = self.some_ids()
        version = self.random.randrange(1 << 20)
        after = {
            i: {"owner": self.number, "bucket": i % 7, "version": version, "nest": {"keep": i}}
            for i in ids
        }
        points = [
            models.PointStruct(id=i, vector=vectors_of(self.rows, i, version), payload=after[i])
            for i in ids
        ]
        return after, lambda wait: self.client.upsert(self.collection, points, wait=wait)

    def delete(self):
        ids = self.some_ids()
        return dict.fromkeys(ids), lambda wait: self.client.delete(self.collection, ids, wait=wait)

    def delete_matching(self):
        bucket = self.random.randrange(7)
        after = {i: None for i, payload in self.state.items() if payload["bucket"] == bucket}
        selector = models.FilterSelector(filter=self.matching(bucket))
        return after, lambda wait: self.client.delete(self.collection, selector, wait=wait)

    def mark(self):
        """Merges a key at the top or inside `nest`, for points that exist or not."""
        ids, mark = self.some_ids(), {"mark": self.random.randrange(1 << 20)}
        key = self.random.choice([None, "nest"])
        after = {i: self.merged(i, mark, key) for i in ids if i in self.state}
        return after, lambda wait: self.client.set_payload(
            self.collection, mark, points=ids, key=key, wait=wait
        )

    def mark_matching(self):
        bucket, mark = self.random.randrange(7), {"mark": self.random.randrange(1 << 20)}
        ids = [i for i, payload in self.state.items() if payload["bucket"] == bucket]
        after = {i: self.merged(i, mark, None) for i in ids}
        return after, lambda wait: self.client.set_payload(
            self.collection, mark, points=self.matching(bucket), wait=wait
        )

    def merged(self, point_id, mark, key):
        payload = dict(self.state[point_id])
        if key is None:
            return payload | mark
        payload[key] = payload[key] | mark
        return payload

    def matching(self, bucket):
        def equals(key, value):
            return models.FieldCondition(key=key, match=models.MatchValue(value=value))

        return models.Filter(must=[equals("owner", self.number), equals("bucket", bucket)])

    def settle(self, found, why):
        """Compares what the server holds with what it must hold, and takes on what it chose for
        the operation in flight: all of it or nothing."""
        for point_id in self.ids:
            if point_id not in self.pending:
                self.check(point_id, self.state.get(point_id), found, why)
        before = {i: self.state.get(i) for i in self.pending}

        def all_as(states):
            return all(same_point(self.rows, i, p, found.get(i)) for i, p in states.items())

        if not all_as(before):
            assert all_as(self.pending), f"{why}: an operation is there in part: {self.pending}"
            self.apply()
        self.pending = {}

    def check(self, point_id, payload, found, why):
        if not same_point(self.rows, point_id, payload, found.get(point_id)):
            got = found.get(point_id)
            shown = got and {"payload": got["payload"], TINY: got["vector"].get(TINY)}
            raise AssertionError(f"{why}: point {point_id} must be {payload}, is {shown}")


def check_everything(server, collection, writers, why):
    """Every acknowledged write is there, nothing else is, nothing twice, and all reads agree."""
    points = server.scroll_all(collection)
    found = {p["id"]: p for p in points}
    assert len(found) == len(points), f"{why}: a point came twice"
    owned = {i for w in writers for i in w.ids}
    assert found.keys() <= owned, f"{why}: points nobody wrote: {sorted(found.keys() - owned)}"
    for writer in writers:
        assert writer.refusal is None, f"{why}: {writer.name}: {writer.refusal!r}"
        writer.settle(found, why)
    client = writers[0].client
    assert client.count(collection, exact=True).count == len(found), why
    assert client.get_collection(collection).points_count == len(found), why
    sample = sorted(found)[:: max(1, len(found) // 8)]
    for point_id in sample:
        check_searches(client, collection, found[point_id], why)
    gone = sorted(owned - found.keys())
    if gone:
        none = models.Filter(must=[models.HasIdCondition(has_id=gone)])
        hits = client.query_points(collection, query=[0.0] * 4, using=TINY, query_filter=none)
        assert hits.points == [], f"{why}: deleted points came back"


def check_searches(client, collection, point, why):
    """The point is its own nearest neighbour, by either vector."""
    for using in (TINY, TEXT):
        hits = client.query_points(
            collection, query=point["vector"][using], using=using, limit=10
        ).points
        assert point["id"] in [h.id for h in hits], f"{why}: {point['id']} not found by {using}"
        assert len({h.id for h in hits}) == len(hits), f"{why}: a hit came twice"
