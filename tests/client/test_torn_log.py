"""A damaged log: a torn tail is cut off, damage before synced records is never passed over."""

import shutil

import pytest

from flatwater_process import Server

COUNT = 50


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The storage of a server that was killed after COUNT single writes, each acknowledged as durable."""
    server = Server(tmp_path_factory.mktemp("written")).start()
    body = {"vectors": {"size": 4, "distance": "Dot"}}
    for collection in ("torn", "other"):
        server.call("PUT", f"/collections/{collection}", body).result
        for i in range(COUNT):
            path = f"/collections/{collection}/points?wait=true"
            server.call("PUT", path, {"points": [point(i)]}).result
    server.kill()
    return server.storage


@pytest.fixture
def killed(written, new_server):
    """A server of its own, not started yet, with a copy of that storage."""
    server = new_server()
    shutil.copytree(written, server.storage)
    return server


def point(i):
    return {"id": i, "vector": [i, 1, 2, 3], "payload": {"text": f"point {i} " * 4}}


def newest_log(server):
    """The newest log file of the collection `torn`."""
    logs = [p for p in server.storage.rglob("wal-*.log") if "torn" in p.parts]
    assert logs, [str(p) for p in server.storage.rglob("*")]
    return max(logs, key=lambda p: (p.stat().st_mtime_ns, p.name))


def last_byte(data):
    """Index of the last byte written; the rest of the file may be space reserved ahead."""
    return len(data.rstrip(b"\0")) - 1


def cut(data):
    return data[: last_byte(data) - 4]


def cut_deep(data):
    return data[: last_byte(data) - 40]


def garble(data):
    end = last_byte(data)
    return data[: end - 6] + bytes(b ^ 0xA5 for b in data[end - 6 : end + 1]) + data[end + 1 :]


def garbage_behind(data):
    return data[: last_byte(data) + 1] + bytes(range(1, 200)) + data[last_byte(data) + 1 :]


def zeros_behind(data):
    return data + bytes(5000)


@pytest.mark.parametrize("damage", [cut, cut_deep, garble, garbage_behind, zeros_behind])
def test_a_torn_tail_costs_at_most_the_last_record(killed, damage):
    """Field report D9: a torn log kept the server from starting."""
    log = newest_log(killed)
    log.write_bytes(damage(log.read_bytes()))
    killed.start()
    points = killed.scroll_all("torn")
    assert points[: COUNT - 1] == [point(i) for i in range(COUNT - 1)]
    assert points[COUNT - 1 :] in ([], [point(COUNT - 1)])
    assert killed.scroll_all("other") == [point(i) for i in range(COUNT)]
    # And it goes on: what is written behind the cut survives the next crash.
    added = {"points": [point(COUNT)]}
    killed.call("PUT", "/collections/torn/points?wait=true", added).result
    killed.kill()
    killed.start()
    assert killed.scroll_all("torn") == [*points, point(COUNT)]


def test_damage_before_synced_records_is_reported_and_not_passed_over(killed):
    """Later records say that the damaged one was synced: silence would lose what was promised."""
    log = newest_log(killed)
    data = bytearray(log.read_bytes())
    text = data.find(b"point 20 ")
    assert text > 0, "payload text is expected to stand in the log as it is"
    data[text : text + 6] = b"damage"
    log.write_bytes(data)
    killed.start(wait=False)
    try:
        killed.wait_until_ready()
    except AssertionError:
        # Refusing to start is an answer too, if the log says which file.
        assert not killed.alive(), killed.log()
        killed.process = None
        assert log.name in killed.log()
        return
    assert killed.scroll_all("other") == [point(i) for i in range(COUNT)]
    reply = killed.call("POST", "/collections/torn/points/scroll", {"limit": COUNT})
    assert reply.status >= 500 and log.name in killed.log(), reply.text[:500]
