"""Recall of searches while the data is still arriving."""

import threading

import flatwater_data
import packed

K = 10


class Loader(threading.Thread):
    """Uploads the rows in order; `acknowledged` rows are certainly there, `sent` ones perhaps."""

    def __init__(self, server, collection, rows, batch):
        super().__init__(daemon=True)
        self.server = server
        self.collection, self.rows, self.batch = collection, rows, batch
        self.acknowledged = self.sent = 0
        self.failure = None

    def run(self):
        try:
            for begin in range(0, len(self.rows), self.batch):
                end = min(begin + self.batch, len(self.rows))
                self.sent = end
                packed.upload(
                    self.server,
                    self.collection,
                    self.rows[begin:end],
                    ids=range(begin, end),
                    wait=(begin // self.batch) % 4 == 0,
                )
                self.acknowledged = end
        except Exception as failure:  # noqa: BLE001 - reported by the test
            self.failure = failure


def hits(found, truth, acknowledged):
    """How many of the answers that were due are there, and how many were due.

    `truth` is the exact order over the rows that were acknowledged before the search. A row that
    arrived during the search may stand in the answer and pushes the last ones out of it.
    """
    old = [i for i in found if i < acknowledged]
    due = truth[: K - (len(found) - len(old))]
    return len(set(old) & set(due.tolist())), len(due)


def assert_same_ranking(found, truth, scores):
    """`found` is the exact ranking `truth`; rows may change places only where their scores (by row)
    are too close for 32-bit floats to tell apart."""
    assert len(found) == len(truth) == len(set(found)), (found, truth)
    for at, (one, other) in enumerate(zip(found, truth)):
        assert abs(scores[one] - scores[other]) <= 1e-6 * max(1, abs(scores[other])), (at, found, truth)


def measure(client, collection, rows, queries, loader=None, **parameters):
    """Recall@10 of these queries over the acknowledged rows; checks every answer for doubles."""
    right = due = 0
    for query in queries:
        acknowledged = loader.acknowledged if loader else len(rows)
        found = [p.id for p in client.query_points(collection, query, limit=K, **parameters).points]
        sent = loader.sent if loader else len(rows)
        assert len(set(found)) == len(found), f"a point came twice: {found}"
        assert all(i < sent for i in found), f"points that were never sent: {found}"
        assert len(found) >= min(K, acknowledged), f"{len(found)} of {acknowledged} points"
        if acknowledged:
            truth = flatwater_data.exact(rows[:acknowledged], query[None], K)[0]
            found_now, due_now = hits(found, truth, acknowledged)
            right, due = right + found_now, due + due_now
    return right / due if due else 1.0
