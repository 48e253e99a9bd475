"""Settings: defaults, files, environment; unknown ones warn, unserved security ones stop the start."""

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
        ("FLATWATER__SERVICE__JWT_RBAC", "true"),
        ("FLATWATER__SERVICE__ENABLE_TLS", "true"),
        ("QDRANT__SERVICE__ENABLE_TLS", "true"),
        ("QDRANT__SERVICE__VERIFY_HTTPS_CLIENT_CERTIFICATE", "true"),
    ],
)
def test_a_security_setting_that_is_not_served_stops_the_start(new_server, key, value):
    """Field report S7: of TLS settings some were ignored in silence."""
    server = new_server()
    said = refused(server, {key: value})
    assert key.split("__")[-1].lower() in said.lower() and "not served" in said
    assert not server.storage.exists()


@pytest.mark.parametrize("key", ["API_KEY", "READ_ONLY_API_KEY", "ALT_API_KEY"])
@pytest.mark.parametrize("value", ["", " secret-3141"])
def test_a_key_that_nobody_could_send_stops_the_start(new_server, key, value):
    for prefix in ("FLATWATER", "QDRANT"):
        said = refused(new_server(), {f"{prefix}__SERVICE__{key}": value})
        assert f"service.{key.lower()}" in said and "not empty" in said
        assert "secret-3141" not in said, "a key does not belong in the log"


def test_names_and_files_of_qdrant_are_taken(new_server):
    server = new_server(
        {
            "FLATWATER__SERVICE__HTTP_PORT": None,
            "FLATWATER__SERVICE__GRPC_PORT": None,
            "FLATWATER__STORAGE__STORAGE_PATH": None,
        }
    )
    folder = server.folder / "config"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        "storage:\n  optimizers:\n    indexing_threshold_kb: 123\n"
        "service:\n  enable_tls: false\n"
        "tls:\n  cert: ./tls/cert.pem\n  key: ./tls/key.pem\n"
    )
    (folder / "production.yaml").write_text(
        "storage:\n  storage_path: ./of-production\n  hnsw_index:\n    m: 24\n"
    )
    server.settings |= {
        "RUN_MODE": "production",
        "QDRANT__SERVICE__HTTP_PORT": str(server.port),
        "QDRANT__SERVICE__GRPC_PORT": "null",
        "QDRANT__STORAGE__HNSW_INDEX__EF_CONSTRUCT": "77",
    }
    server.start()
    server.call("PUT", "/collections/c", {"vectors": {"size": 4, "distance": "Dot"}}).result
    config = server.call("GET", "/collections/c").result["config"]
    assert (config["hnsw_config"]["m"], config["hnsw_config"]["ef_construct"]) == (24, 77)
    assert config["optimizer_config"]["indexing_threshold"] == 123
    assert (server.folder / "of-production").is_dir()
    log = server.log()
    assert " WARN " not in log and "gRPC endpoint disabled" in log, log


def test_a_storage_folder_of_qdrants_is_refused_and_left_as_it_is(new_server):
    server = new_server()
    segment = server.storage / "collections" / "c" / "0" / "segments" / "x"
    segment.mkdir(parents=True)
    (segment / "payload.dat").write_bytes(b"theirs")
    (server.storage / "raft_state.json").write_text("{}")
    before = sorted((p, p.stat().st_mtime_ns) for p in server.storage.rglob("*"))
    said = refused(server, {})
    assert str(server.storage) in said and "Qdrant" in said
    assert sorted((p, p.stat().st_mtime_ns) for p in server.storage.rglob("*")) == before


@pytest.mark.parametrize("guarded", [False, True])
def test_listening_everywhere_without_a_key_is_warned_of(new_server, guarded):
    key = {"QDRANT__SERVICE__API_KEY": "k"} if guarded else {}
    server = new_server({"FLATWATER__SERVICE__HOST": "0.0.0.0"} | key).start()
    assert ("without an API key" in server.log()) == (not guarded)


def test_settings_of_qdrant_that_are_not_served_yet_warn_and_change_nothing(new_server):
    settings = {
        "FLATWATER__STORAGE__PERFORMANCE__UPDATE_RATE_LIMIT": "7",
        "QDRANT__SERVICE__HARDWARE_REPORTING": "true",
    }
    server = new_server(settings).start()
    assert server.call("GET", "/collections").result == {"collections": []}
    log = server.log().lower()
    assert "warn" in log and "update_rate_limit" in log and "hardware_reporting" in log


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
    assert str(first.port) in said and "service.http_port" in said
    third = new_server()
    third.grpc_port = first.grpc_port
    said = refused(third, {})
    assert str(first.grpc_port) in said and "service.grpc_port" in said


def test_a_storage_folder_in_use_is_refused(new_server):
    first = new_server().start()
    second = new_server()
    second.storage = first.storage
    said = refused(second, {})
    assert str(first.storage) in said or "lock" in said.lower()
    first.call("GET", "/collections").result
