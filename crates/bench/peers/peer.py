"""One peer of `flatwater-bench peers`: builds and searches when told, one JSON line for each command.

Commands on standard input: `build` (anew, timed) and `search EF` (all queries on one thread, several passes). Rows found by the
last pass go to the file that `--found` names, little-endian u32, `k` a query; missing ones are 0xffffffff.
"""
import argparse
import json
import sys
import time
from importlib.metadata import version

import numpy as np


class Hnswlib:
    package = "hnswlib"
    spaces = {"cosine": "cosine", "dot": "ip", "euclid": "l2"}

    def __init__(self, options):
        self.options, self.index = options, None

    def build(self, rows):
        import hnswlib

        self.index = hnswlib.Index(space=self.spaces[self.options.metric], dim=self.options.dim)
        self.index.init_index(max_elements=len(rows), M=self.options.m, ef_construction=self.options.ef_construct, random_seed=100)
        self.index.add_items(rows, num_threads=self.options.threads)

    def aim(self, ef):
        self.index.set_ef(ef)

    def search(self, queries, k):
        return self.index.knn_query(queries, k=k, num_threads=1)[0]


class Usearch8:
    package = "usearch"
    metrics = {"cosine": "cos", "dot": "ip", "euclid": "l2sq"}

    def __init__(self, options):
        self.options, self.index = options, None

    def build(self, rows):
        from usearch.index import Index

        self.index = Index(
            ndim=self.options.dim,
            metric=self.metrics[self.options.metric],
            dtype="i8",
            connectivity=self.options.m,
            expansion_add=self.options.ef_construct,
        )
        self.index.add(np.arange(len(rows), dtype=np.uint64), rows, threads=self.options.threads)

    def aim(self, ef):
        self.index.expansion_search = ef

    def search(self, queries, k):
        return self.index.search(queries, k, threads=1).keys


def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return [time.perf_counter() - wall, time.process_time() - cpu], result


def passes(peer, queries, options):
    """Until `--pass-seconds` have gone by, at least three times."""
    times, found, begin = [], None, time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < options.pass_seconds:
        seconds, found = timed(lambda: peer.search(queries, options.k))
        times.append(seconds)
    return times, found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=["hnswlib", "usearch-i8"])
    for name in ("rows", "queries", "found", "metric"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("dim", "m", "ef-construct", "threads", "k"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--pass-seconds", type=float, required=True)
    options = parser.parse_args()
    rows = np.fromfile(options.rows, np.float32).reshape(-1, options.dim)
    queries = np.fromfile(options.queries, np.float32).reshape(-1, options.dim)
    peer = {"hnswlib": Hnswlib, "usearch-i8": Usearch8}[options.peer](options)

    def say(answer):
        print(json.dumps(answer), flush=True)

    say({"version": version(peer.package)})
    for line in sys.stdin:
        words = line.split()
        if words[0] == "build":
            peer.index = None
            seconds, _ = timed(lambda: peer.build(rows))
            say({"passes": [seconds]})
        else:
            peer.aim(int(words[1]))
            times, found = passes(peer, queries, options)
            np.asarray(found).astype(np.int64).astype(np.uint32).tofile(options.found)
            say({"passes": times})


if __name__ == "__main__":
    main()
