"""Settings: defaults, file, environment; unknown ones warn, unserved security ones stop the start."""

import subprocess

import pytest

from flatwater_process import binary


def refused(server, settings):
    """Starts the server with these settings, which it must refuse; returns what it said."""
    environment = server.environment() | settings
    done = subprocess.run(
        [binary()], cwd=server.folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, text=True,
    )
    assert done.returncode != 0, done.stdout
    return done.stdout


def test_with_no_storage_setting_data_goes_to_the_storage_folder(new_server):
    server = new_server({"FLATWATER__STORAGE__STORAGE_PATH": None}).start()
    server.call("PUT", "/collections/here", {"vectors": {"size": 4, "distance": "Dot"}}).result
    assert any((server.folder / "storage").iterdir())


def test_the_environment_sets_host_port_and_storage(new_server, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    server = new_server({"FLATWATER__STORAGE__STORAGE_PATH": str(elsewhere)}).start()
    server.call("PUT", "/collections/there", {"vectors": {"size": 4, "distance": "Dot"}}).result
    assert any(elsewhere.rglob("*")) and not server.storage.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("API_KEY", "secret-3141"),
        ("READ_ONLY_API_KEY", "secret-3141"),
        ("ALT_API_KEY", "secret-3141"),
        ("JWT_RBAC", "true"),
        ("ENABLE_TLS", "true"),
    ],
)
def test_a_security_setting_that_is_not_served_stops_the_start(new_server, key, value):
    said = refused(new_server(), {f"FLATWATER__SERVICE__{key}": value})
    assert key.lower() in said.lower()
    assert "secret-3141" not in said, "a key does not belong in the log"


def test_settings_of_qdrant_that_are_not_served_yet_warn_and_change_nothing(new_server):
    settings = {
        "FLATWATER__STORAGE__PERFORMANCE__UPDATE_RATE_LIMIT": "7",
        "FLATWATER__SERVICE__GRPC_PORT": "6334",
    }
    server = new_server(settings).start()
    assert server.call("GET", "/collections").result == {"collections": []}
    log = server.log().lower()
    assert "warn" in log and "update_rate_limit" in log and "grpc_port" in log


def test_a_setting_that_nobody_knows_warns(new_server):
    server = new_server({"FLATWATER__SERVICE__NO_SUCH_THING": "1"}).start()
    log = server.log().lower()
    assert "warn" in log and "no_such_thing" in log


def test_a_file_sets_what_the_environment_does_not(new_server):
    server = new_server()
    folder = server.folder / "config"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        "storage:\n"
        "  storage_path: ./from-the-file\n"
        "  hnsw_index:\n"
        "    m: 20\n"
        "    ef_construct: 60\n"
    )
    server.settings = {"FLATWATER__STORAGE__HNSW_INDEX__EF_CONSTRUCT": "90"}
    server.start()
    server.call("PUT", "/collections/c", {"vectors": {"size": 4, "distance": "Dot"}}).result
    hnsw = server.call("GET", "/collections/c").result["config"]["hnsw_config"]
    assert (hnsw["m"], hnsw["ef_construct"]) == (20, 90)
    assert server.storage.is_dir() and not (server.folder / "from-the-file").exists()


def test_a_port_that_is_taken_is_said_and_ends_the_start(new_server):
    first = new_server().start()
    second = new_server()
    second.port = first.port
    said = refused(second, {})
    assert str(first.port) in said


def test_a_storage_folder_in_use_is_refused(new_server):
    first = new_server().start()
    second = new_server()
    second.storage = first.storage
    said = refused(second, {})
    assert str(first.storage) in said or "lock" in said.lower()
    first.call("GET", "/collections").result
