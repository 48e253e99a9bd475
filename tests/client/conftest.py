"""Fixtures: servers, clients, collections and data."""

import os
import random

import pytest

import flatwater_data
from flatwater_process import Server

# Set for the workers, which are started with this environment: the header names the seed of all of them.
SEED = int(os.environ.setdefault("FLATWATER_SEED", str(random.SystemRandom().randrange(2**32))))


def pytest_report_header():
    full = flatwater_data.full_folder()
    second = f"and the full set in {full}" if full else "only (FLATWATER_DATA_DIR is not set)"
    return [
        f"data: {flatwater_data.IN_REPOSITORY.name}, 12,000 rows, {second}",
        f"seed: FLATWATER_SEED={SEED}",
    ]


# These wait for background work, which takes what others leave of the cores: one worker runs them one after
# the other. Both workers take the long files first.
WAITING = ["test_kill", "test_recall", "test_visibility", "test_bench"]
LONG = ["test_sealed", "test_optimizations", "test_visible", "test_stop"]


# First: the plugin that shares the tests out reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    order = WAITING + LONG
    items.sort(key=lambda i: order.index(i.path.stem) if i.path.stem in order else len(order))
    for item in items:
        file = item.path.stem
        item.add_marker(pytest.mark.xdist_group("waiting" if file in WAITING else file))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for server in item.stash.get(SERVERS, []):
            report.sections.append((f"log of {server.url}", server.log()))
    return report


SERVERS = pytest.StashKey()


@pytest.fixture
def seed(request):
    """A seed of this test's own; FLATWATER_SEED in the header repeats the whole run."""
    return f"{SEED}/{request.node.name}"


@pytest.fixture(scope="module")
def module_seed(request):
    """A seed that all turns of a test with parameters have in common."""
    return f"{SEED}/{request.module.__name__}"


@pytest.fixture(scope="session")
def words():
    """12,000 real vectors with payload, and 300 held-out queries."""
    return flatwater_data.load()


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("shared")).start()
    yield server
    if server.alive():
        code, _ = server.stop(within=10)
        assert code == 0, server.log()


@pytest.fixture
def server(request, shared_server):
    """The server that most tests share. A test that ends it fails."""
    request.node.stash.setdefault(SERVERS, []).append(shared_server)
    yield shared_server
    assert shared_server.alive(), f"the server ended\n{shared_server.log()}"


@pytest.fixture(scope="session")
def shared_clients(shared_server):
    """A client of the shared server for each protocol; every test uses the same two."""
    clients = shared_server.client(), shared_server.client(grpc=True)
    yield clients
    for client in clients:
        client.close()


@pytest.fixture
def client(server, shared_clients):
    return shared_clients[0]


@pytest.fixture
def grpc_client(server, shared_clients):
    return shared_clients[1]


@pytest.fixture
def name(request, server):
    """Name of a collection for this test alone, deleted afterwards."""
    name = request.node.name.replace("[", "-").replace("]", "")[-200:]
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)
    yield name
    server.call("DELETE", f"/collections/{name}")


@pytest.fixture
def new_server(request, tmp_path):
    """Makes servers for this test alone: new_server(settings) -> Server, not started yet."""
    made = request.node.stash.setdefault(SERVERS, [])

    def make(settings=None):
        server = Server(tmp_path / f"server-{len(made)}", settings)
        made.append(server)
        return server

    yield make
    for server in made:
        if server.alive():
            server.kill()
