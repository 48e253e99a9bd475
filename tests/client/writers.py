"""Clients that write without pause and know what every one of their points must hold.

Each writer owns a range of ids, so the order of the changes to a point is the order in which its
writer sent them. An operation is `pending` from before it is sent until its answer is there: if the
server dies in between it may have happened or not, but only as a whole.
"""

import functools
import random
import threading
from dataclasses import dataclass, field, replace

import flatwater_data
import packed
from flatwater_process import CutOff, Session

SPAN = 300
SIZE = 16
TEXT, TINY = "text", "tiny"


@functools.cache
def table(size):
    """Vectors to choose from. Three digits are the same number in JSON, in Python and as a 32-bit
    float, so what comes back is compared as it is."""
    return flatwater_data.load(limit=2000).rows[:, :size].astype(float).round(3).tolist()


def vector_of(name, point_id, version, size):
    """One vector of one version of a point; `tiny` says whose it is."""
    if name == TINY:
        return [float(point_id), float(version), 1.0, 0.5]
    rows = table(size)
    return rows[(point_id * 31 + version * 7919) % len(rows)]


def create(server, name, size=SIZE, **settings):
    """A collection with the two vectors; `settings` are those of the JSON request."""
    vectors = {TEXT: {"size": size, "distance": "Dot"}, TINY: {"size": 4, "distance": "Euclid"}}
    server.call("PUT", f"/collections/{name}", {"vectors": vectors} | settings).result


def bulk(server, collection, ids, rows):
    """Uploads many points with a text vector and no payload, without waiting for the disk."""
    packed.upload(server, collection, rows[: len(ids)], ids=ids, name=TEXT, wait=False)


@dataclass(frozen=True)
class Point:
    """What a point must hold: its payload, and the version of each vector that it has."""

    payload: dict
    versions: dict = field(default_factory=dict)

    def vectors(self, point_id, size):
        return {n: vector_of(n, point_id, v, size) for n, v in self.versions.items()}

    def is_there(self, point_id, found, size):
        """Whether `found` is exactly this, value by value."""
        return found["payload"] == self.payload and found["vector"] == self.vectors(point_id, size)


class Writer(threading.Thread):
    """Changes its own points in every way there is until it is told to stop or cut off."""

    def __init__(self, server, collection, number, seed, state=None, size=SIZE):
        super().__init__(name=f"writer-{number} of {collection}", daemon=True)
        self.session = Session(server)
        self.collection, self.path = collection, f"/collections/{collection}/points"
        self.number, self.size = number, size
        self.random = random.Random(f"{seed}/{self.name}")
        self.ids = range(number * SPAN, (number + 1) * SPAN)
        self.state = dict(state or {})  # id -> Point that is there
        self.pending = {}  # id -> Point after the operation in flight, None = deleted
        self.acknowledged = 0
        self.refusal = None
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            self.pending, (method, suffix, body) = self.choose()
            wait = "true" if self.random.random() < 0.3 else "false"
            try:
                reply = self.session.call(method, f"{self.path}{suffix}?wait={wait}", body)
            except CutOff:
                return  # Whether the operation happened is for the check to find out.
            if reply.status != 200:
                self.refusal = reply
                return
            self.apply()

    def apply(self):
        for point_id, point in self.pending.items():
            self.state.pop(point_id, None)
            if point is not None:
                self.state[point_id] = point
        self.pending = {}
        self.acknowledged += 1

    def choose(self):
        """The next operation: what its points are afterwards, and the request that does it."""
        operations = {
            self.upsert: 40,
            self.delete: 8,
            self.delete_matching: 4,
            self.merge_payload: 12,
            self.merge_matching: 6,
            self.overwrite_payload: 5,
            self.delete_keys: 5,
            self.clear_payload: 3,
            self.update_vectors: 10 if self.state else 0,
            self.delete_vectors: 7,
        }
        return self.random.choices(list(operations), list(operations.values()))[0]()

    def some_ids(self):
        """Ids of points that exist or not."""
        return self.random.sample(self.ids, self.random.randrange(1, 9))

    def changed(self, ids, change):
        """Those of `ids` that are there, each changed."""
        return {i: change(self.state[i]) for i in ids if i in self.state}

    def upsert(self):
        version = self.random.randrange(1 << 20)
        after = {}
        for i in self.some_ids():
            payload = {"owner": self.number, "bucket": i % 7, "version": version, "nest": {"keep": i}}
            after[i] = Point(payload, {TEXT: version, TINY: version})
        points = [
            {"id": i, "vector": p.vectors(i, self.size), "payload": p.payload}
            for i, p in after.items()
        ]
        return after, ("PUT", "", {"points": points})

    def delete(self):
        ids = self.some_ids()
        return dict.fromkeys(ids), ("POST", "/delete", {"points": ids})

    def delete_matching(self):
        ids, matching = self.bucket()
        return dict.fromkeys(ids), ("POST", "/delete", {"filter": matching})

    def merge_payload(self):
        """Merges a key at the top or inside `nest`."""
        ids, mark = self.some_ids(), {"mark": self.random.randrange(1 << 20)}
        body = {"payload": mark, "points": ids}
        if self.random.random() < 0.5:
            return self.changed(ids, lambda p: merged(p, mark)), ("POST", "/payload", body)
        after = self.changed(ids, lambda p: merged(p, {"nest": p.payload.get("nest", {}) | mark}))
        return after, ("POST", "/payload", body | {"key": "nest"})

    def merge_matching(self):
        ids, matching = self.bucket()
        mark = {"mark": self.random.randrange(1 << 20)}
        after = self.changed(ids, lambda p: merged(p, mark))
        return after, ("POST", "/payload", {"payload": mark, "filter": matching})

    def overwrite_payload(self):
        ids = self.some_ids()
        payload = {"owner": self.number, "bucket": self.random.randrange(7)}
        after = self.changed(ids, lambda p: replace(p, payload=payload))
        return after, ("PUT", "/payload", {"payload": payload, "points": ids})

    def delete_keys(self):
        ids, keys = self.some_ids(), self.random.sample(["bucket", "mark", "nest", "version"], 2)
        after = self.changed(
            ids, lambda p: replace(p, payload={k: v for k, v in p.payload.items() if k not in keys})
        )
        return after, ("POST", "/payload/delete", {"keys": keys, "points": ids})

    def clear_payload(self):
        ids = self.some_ids()
        after = self.changed(ids, lambda p: replace(p, payload={}))
        return after, ("POST", "/payload/clear", {"points": ids})

    def update_vectors(self):
        ids = self.random.sample(sorted(self.state), min(len(self.state), self.random.randrange(1, 5)))
        name, version = self.random.choice([TEXT, TINY]), self.random.randrange(1 << 20)
        after = self.changed(ids, lambda p: replace(p, versions=p.versions | {name: version}))
        points = [{"id": i, "vector": {name: vector_of(name, i, version, self.size)}} for i in ids]
        return after, ("PUT", "/vectors", {"points": points})

    def delete_vectors(self):
        name = self.random.choice([TEXT, TINY])

        def without(point):
            return replace(point, versions={n: v for n, v in point.versions.items() if n != name})

        if self.random.random() < 0.3:
            ids, matching = self.bucket()
            body = {"filter": matching, "vector": [name]}
        else:
            ids = self.some_ids()
            body = {"points": ids, "vector": [name]}
        return self.changed(ids, without), ("POST", "/vectors/delete", body)

    def bucket(self):
        """The ids of one bucket, and the filter that selects them."""
        bucket = self.random.randrange(7)
        ids = [
            i
            for i, p in self.state.items()
            if p.payload.get("bucket") == bucket and p.payload.get("owner") == self.number
        ]
        return ids, {
            "must": [
                {"key": "owner", "match": {"value": self.number}},
                {"key": "bucket", "match": {"value": bucket}},
            ]
        }

    def settle(self, found, why):
        """Compares what the server holds with what it must hold, and takes on what it chose for
        the operation in flight: all of it or nothing."""
        for point_id in self.ids:
            if point_id not in self.pending:
                self.check(point_id, self.state.get(point_id), found.get(point_id), why)
        if not self.pending:
            return
        before = {i: self.state.get(i) for i in self.pending}

        def all_as(states):
            return all(same(i, p, found.get(i), self.size) for i, p in states.items())

        if not all_as(before):
            assert all_as(self.pending), f"{why}: an operation is there in part: {self.pending}"
            self.apply()
        self.pending = {}

    def check(self, point_id, wanted, found, why):
        if not same(point_id, wanted, found, self.size):
            raise AssertionError(f"{why}: point {point_id} must be {wanted}, is {found}")


def merged(point, keys):
    return replace(point, payload=point.payload | keys)


def same(point_id, wanted, found, size):
    """Whether a point that was read back is as it must be; None is a point that is not there."""
    if wanted is None or found is None:
        return wanted is None and found is None
    return wanted.is_there(point_id, found, size)


def check_everything(server, collection, writers, why, samples=2):
    """Every acknowledged write is there, nothing else is, nothing twice, and all reads agree."""
    points = server.scroll_all(collection, page=1000)
    found = {p["id"]: p for p in points}
    assert len(found) == len(points), f"{why}: a point came twice"
    owned = {i for w in writers for i in w.ids}
    assert found.keys() <= owned, f"{why}: points nobody wrote: {sorted(found.keys() - owned)}"
    for writer in writers:
        assert writer.refusal is None, f"{why}: {writer.name}: {writer.refusal}"
        writer.settle(found, why)
    base = f"/collections/{collection}"
    assert count(server, base, {}) == len(found), why
    assert server.call("GET", base).result["points_count"] == len(found), why
    chosen = random.Random(why)
    for bucket in chosen.sample(range(7), 2):
        # Whether there is a field index or not, and whatever it went through.
        wanted = sum(p["payload"].get("bucket") == bucket for p in points)
        filter_ = {"must": [{"key": "bucket", "match": {"value": bucket}}]}
        assert count(server, base, filter_) == wanted, f"{why}: bucket {bucket}"
    for point in chosen.sample(points, min(samples, len(points))):
        check_searches(server, base, point, why)
    gone = sorted(owned - found.keys())
    if gone:
        body = {"query": [0.0] * 4, "using": TINY, "filter": {"must": [{"has_id": gone}]}}
        hits = server.call("POST", f"{base}/points/query", body).result["points"]
        assert hits == [], f"{why}: deleted points came back"


def count(server, base, filter_):
    body = {"exact": True, "filter": filter_}
    return server.call("POST", f"{base}/points/count", body).result["count"]


def check_searches(server, base, point, why):
    """The point is among its own nearest, by either vector that it has."""
    for using, vector in point["vector"].items():
        exact = {"query": vector, "using": using, "limit": 10}
        if using == TEXT:
            # By dot product others may be nearer than the point itself.
            exact["filter"] = {"must": [{"has_id": [point["id"]]}]}
        hits = server.call("POST", f"{base}/points/query", exact).result["points"]
        ids = [h["id"] for h in hits]
        assert point["id"] in ids, f"{why}: {point['id']} not found by {using}"
        assert len(set(ids)) == len(ids), f"{why}: a hit came twice"
