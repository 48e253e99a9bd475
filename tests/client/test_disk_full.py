"""A full disk: writes are refused with what is missing, reads and deletions go on, and nothing has to
be restarted when there is room again. Field reports R1, R10, R11, V7.

The disk is a small tmpfs. To mount one takes root; without it these tests are skipped, and say so.
"""

import os
import subprocess

import pytest

DISK_MB = 24
COUNT = 120
TEXT = "x" * 2000
PATH = "/collections/c/points"


@pytest.fixture
def disk(tmp_path):
    """The folder of a file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a small disk could not be mounted: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def server(disk, new_server):
    """A server with COUNT points on the small disk."""
    server = new_server()
    server.storage = disk / "storage"
    server.start()
    body = {"vectors": {"size": 4, "distance": "Dot"}}
    server.call("PUT", "/collections/c", body).result
    index = {"field_name": "kind", "field_schema": "integer"}
    server.call("PUT", "/collections/c/index?wait=true", index).result
    points = [point(i) for i in range(COUNT)]
    server.call("PUT", f"{PATH}?wait=true", {"points": points}).result
    return server


def point(i, text=TEXT):
    return {"id": i, "vector": [i, 1, 2, 3], "payload": {"kind": i % 10, "text": text}}


def fill(disk):
    """Takes every byte that is free, so that none is left for anybody."""
    with open(disk / "ballast", "ab", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while ballast.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
    assert os.statvfs(disk).f_bavail == 0


def empty(disk):
    (disk / "ballast").unlink()


def fill_with_points(server, disk, held):
    """Upserts until one is refused: what was reserved before the disk was full may still be used.
    Puts what was acknowledged into `held`; returns the refusal."""
    texts = [20 * TEXT, TEXT]
    for i in range(COUNT, COUNT + 2000):
        added = point(i, texts[0])
        wait = "true" if i % 2 else "false"
        reply = server.call("PUT", f"{PATH}?wait={wait}", {"points": [added]})
        if reply.status == 200:
            held[i] = added
        elif len(texts) == 1:
            return reply
        else:
            texts.pop(0)  # What is too little for a large one may do for a small one.
    raise AssertionError("a full disk took 2000 points")


def check_refused(server):
    """Every kind of write that needs room is refused alike, whether its sender waits or not."""
    held = server.scroll_all("c")
    more = {"points": [point(1_000_000)]}
    change = {"payload": {"text": "y" * 3_000_000}, "points": [held[0]["id"]]}
    for wait in ("true", "false"):
        for method, path, body in (("PUT", PATH, more), ("POST", f"{PATH}/payload", change)):
            check_refusal(server.call(method, f"{path}?wait={wait}", body))
    check_refusal(server.call("PUT", "/collections/other", {"vectors": {"size": 4, "distance": "Dot"}}))
    assert server.call("GET", "/collections/other/exists").result == {"exists": False}
    assert server.scroll_all("c") == held, "a refused write left something behind"


def check_refusal(reply):
    assert reply.status == 507, (reply.status, reply.text[:300])
    assert "/disk/storage/" in reply.error and "bytes" in reply.error, reply.error


def check_reads(server, held):
    """All reads and probes answer, and say what was acknowledged."""
    wanted = [held[i] for i in sorted(held)]
    assert server.scroll_all("c") == wanted
    assert server.call("POST", f"{PATH}/count", {}).result["count"] == len(held)
    query = {"query": [1, 0, 0, 0], "limit": 3}
    found = [p["id"] for p in server.call("POST", f"{PATH}/query", query).result["points"]]
    assert found == sorted(held, reverse=True)[:3]
    five = {"filter": {"must": [{"key": "kind", "match": {"value": 5}}]}}
    assert server.call("POST", f"{PATH}/count", five).result["count"] == sum(
        p["payload"]["kind"] == 5 for p in held.values()
    )
    for probe in ("/", "/healthz", "/livez", "/readyz", "/collections", "/collections/c"):
        assert server.call("GET", probe, timeout=5).status == 200, probe


def delete_some(server, held):
    """Deletes by id and by filter, waiting and not; each must work."""
    for n, i in enumerate(sorted(held)[:20]):
        wait = "true" if n % 2 else "false"
        server.call("POST", f"{PATH}/delete?wait={wait}", {"points": [i]}).result
        del held[i]
    kind = held[min(held)]["payload"]["kind"]
    matching = {"filter": {"must": [{"key": "kind", "match": {"value": kind}}]}}
    server.call("POST", f"{PATH}/delete?wait=true", matching).result
    for i in [i for i, p in held.items() if p["payload"]["kind"] == kind]:
        del held[i]


def test_a_full_disk_refuses_writes_serves_the_rest_and_recovers_by_itself(server, disk):
    held = {i: point(i) for i in range(COUNT)}
    fill(disk)
    check_refusal(fill_with_points(server, disk, held))
    check_refused(server)
    check_reads(server, held)
    delete_some(server, held)
    check_reads(server, held)
    check_refused(server)
    empty(disk)
    # Nothing else has to be done: the next writes are taken.
    for wait in ("true", "false"):
        added = point(2_000_000 + len(wait))
        server.call("PUT", f"{PATH}?wait={wait}", {"points": [added]}).result
        held[added["id"]] = added
    server.call("PUT", "/collections/other", {"vectors": {"size": 4, "distance": "Dot"}}).result
    assert server.call("GET", "/collections/c").result["status"] == "green"
    check_reads(server, held)
    server.kill()
    server.start()
    check_reads(server, held)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_restart_on_a_full_disk_serves_reads_and_takes_deletions(server, disk, end):
    held = {i: point(i) for i in range(COUNT)}
    fill(disk)
    fill_with_points(server, disk, held)
    for _ in range(2):
        server.kill() if end == "kill" else server.stop(within=10)
        # What the end gave back is taken by others.
        fill(disk)
        server.start()
        check_reads(server, held)
        check_refused(server)
        delete_some(server, held)
        check_reads(server, held)
    empty(disk)
    added = point(3_000_000)
    server.call("PUT", f"{PATH}?wait=true", {"points": [added]}).result
    held[added["id"]] = added
    server.kill()
    server.start()
    check_reads(server, held)


def test_a_disk_that_fills_up_under_indexing_says_so_and_catches_up(server, disk):
    """Field reports L7, R1: sealing that failed for want of room left a red status for ever, or a panic."""
    body = {
        "vectors": {"size": 64, "distance": "Dot"},
        "optimizers_config": {"indexing_threshold": 1, "max_segment_size": 50},
    }
    server.call("PUT", "/collections/s", body).result
    fill(disk)
    taken = 0
    for begin in range(0, 20_000, 50):
        points = [{"id": i, "vector": [i % 97 + 1] * 64} for i in range(begin, begin + 50)]
        reply = server.call("PUT", "/collections/s/points?wait=false", {"points": points})
        if reply.status != 200:
            check_refusal(reply)
            break
        taken = begin + 50
    else:
        raise AssertionError("a full disk took 20,000 points")
    info = server.call("GET", "/collections/s").result
    assert info["points_count"] == taken
    hits = server.call("POST", "/collections/s/points/query", {"query": [1] * 64, "limit": 9}).result
    assert len(hits["points"]) == min(9, taken)
    empty(disk)
    for i in range(taken, taken + 300):
        points = {"points": [{"id": i, "vector": [i % 97 + 1] * 64}]}
        server.call("PUT", "/collections/s/points?wait=false", points).result
    assert server.call("GET", "/collections/s").result["points_count"] == taken + 300
    server.kill()
    server.start()
    assert len(server.scroll_all("s", page=5000)) == taken + 300
