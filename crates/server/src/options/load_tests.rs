use serde_json::json;

use super::*;

fn layers(file: Value, env: &[(&str, &str)]) -> Result<Loaded, OptionsError> {
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    from_layers(Some(("config.yaml".to_owned(), file)), env)
}

#[test]
fn built_in_defaults_are_qdrants() {
    let options = Options::built_in();
    assert_eq!(
        (options.service.host.as_str(), options.service.http_port),
        ("0.0.0.0", 6333)
    );
    assert_eq!(options.service.max_request_size_mb, 32);
    assert!(options.service.enable_cors && options.collection.on_disk_payload);
    assert_eq!(options.storage_path, PathBuf::from("./storage"));
    assert_eq!(options.performance.search_timeout_sec, 60);
    let engine_defaults = flatwater_engine::config::collection::CollectionConfig::default();
    assert_eq!(options.collection.hnsw, engine_defaults.hnsw);
    assert_eq!(options.collection.optimizers, engine_defaults.optimizers);
    assert_eq!(options.collection.wal, engine_defaults.wal);
}

#[test]
fn environment_wins_over_file_and_file_over_defaults() {
    let file = json!({
        "log_level": "WARN",
        "service": {"http_port": 7000, "host": "127.0.0.1"},
        "storage": {"optimizers": {"indexing_threshold": 5, "max_segment_size_kb": null},
                    "hnsw_index": {"m": 8}},
    });
    let env = [
        ("FLATWATER__SERVICE__HTTP_PORT", "7001"),
        ("FLATWATER__STORAGE__STORAGE_PATH", "/data"),
        ("FLATWATER__STORAGE__OPTIMIZERS__MAX_SEGMENT_SIZE_KB", "77"),
        (
            "FLATWATER__STORAGE__OPTIMIZERS__MAX_OPTIMIZATION_THREADS",
            "auto",
        ),
        ("FLATWATER__SERVICE__ENABLE_CORS", "false"),
        ("FLATWATER__STORAGE__HNSW_INDEX__M", ""),
        ("PATH", "/bin"),
    ];
    let Loaded { options, warnings } = layers(file, &env).unwrap();
    assert_eq!(
        (options.service.http_port, options.service.host.as_str()),
        (7001, "127.0.0.1")
    );
    assert_eq!(options.log_level, "WARN");
    assert_eq!(options.collection.optimizers.indexing_threshold, 5);
    assert_eq!(options.collection.optimizers.max_segment_size, Some(77));
    assert_eq!(options.collection.hnsw.m, 8);
    assert_eq!(options.storage_path, PathBuf::from("/data"));
    assert!(!options.service.enable_cors);
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn invalid_values_name_key_value_and_range() {
    let text = layers(json!({}), &[("FLATWATER__SERVICE__HTTP_PORT", "70000")])
        .unwrap_err()
        .to_string();
    assert_eq!(
        text,
        "FLATWATER__SERVICE__HTTP_PORT: invalid value `70000` of `service.http_port`, \
         expected: 0 to 65535"
    );
    let file = json!({"storage": {"hnsw_index": {"ef_construct": 3}}});
    let text = layers(file, &[]).unwrap_err().to_string();
    assert_eq!(
        text,
        "config.yaml: invalid value `3` of `storage.hnsw_index.ef_construct`, expected: 4 or more"
    );
}

#[test]
fn security_settings_stop_the_start_and_are_named() {
    for (file, key) in [
        (json!({"service": {"api_key": "s3cret"}}), "service.api_key"),
        (
            json!({"service": {"alt_api_key": "s"}}),
            "service.alt_api_key",
        ),
        (
            json!({"service": {"read_only_api_key": "s"}}),
            "service.read_only_api_key",
        ),
        (json!({"service": {"jwt_rbac": true}}), "service.jwt_rbac"),
        (
            json!({"service": {"enable_tls": true}}),
            "service.enable_tls",
        ),
        (
            json!({"service": {"verify_https_client_certificate": true}}),
            "service.verify_https_client_certificate",
        ),
        (json!({"tls": {"cert": "./tls/cert.pem"}}), "tls.cert"),
    ] {
        let text = layers(file, &[]).unwrap_err().to_string();
        assert!(
            text.contains(&format!("`{key}`")) && !text.contains("s3cret"),
            "{text}"
        );
    }
    let env = [("FLATWATER__SERVICE__API_KEY", "s3cret")];
    assert!(matches!(
        layers(json!({}), &env),
        Err(OptionsError::Security { .. })
    ));
    let env = [("QDRANT__SERVICE__API_KEY", "s3cret")];
    assert!(matches!(
        layers(json!({}), &env),
        Err(OptionsError::Security { .. })
    ));
    let off = json!({"service": {"api_key": "", "enable_tls": false, "jwt_rbac": null}});
    assert_eq!(layers(off, &[]).unwrap().warnings, Vec::<String>::new());
}

#[test]
fn keys_not_served_and_unknown_keys_are_warned_of_once_each() {
    let file = json!({
        "service": {"grpc_port": 6334, "colour": "red"},
        "storage": {"snapshots_path": "./snapshots", "performance": {"update_rate_limit": null}},
        "cluster": {"enabled": false, "p2p": {"port": 6335}},
    });
    let warnings = layers(file, &[("QDRANT__LOG_LEVEL", "debug")])
        .unwrap()
        .warnings;
    let expected = [
        "`cluster.p2p.port` is not served yet",
        "unknown option `service.colour`",
        "`service.grpc_port` is not served yet",
        "`storage.snapshots_path` is not served yet",
        "QDRANT__LOG_LEVEL is not read; the name here is FLATWATER__LOG_LEVEL",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
    for (warning, part) in warnings.iter().zip(expected) {
        assert!(warning.contains(part), "{warning}");
    }
}

#[test]
fn yaml_toml_and_json_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.yaml", "service:\n  http_port: 7123\nlog_level: INFO\n"),
        (
            "a.toml",
            "log_level = \"INFO\"\n[service]\nhttp_port = 7123\n",
        ),
        ("a.json", "{\"service\": {\"http_port\": 7123}}"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let tree = read_file(&path).unwrap();
        assert_eq!(tree["service"]["http_port"], json!(7123), "{name}");
        let loaded = from_layers(Some((name.to_owned(), tree)), std::iter::empty()).unwrap();
        assert_eq!(loaded.options.service.http_port, 7123, "{name}");
    }
    let missing = load(Some(&folder.path().join("nope.yaml")))
        .unwrap_err()
        .to_string();
    assert!(missing.contains("nope.yaml"), "{missing}");
    let broken = folder.path().join("broken.yaml");
    std::fs::write(&broken, "a: [").unwrap();
    assert!(matches!(read_file(&broken), Err(OptionsError::File { .. })));
}

#[test]
fn background_threads_follow_the_budget() {
    let threads = |budget: &str| {
        let env = [(
            "FLATWATER__STORAGE__PERFORMANCE__OPTIMIZER_CPU_BUDGET",
            budget,
        )];
        layers(json!({}), &env)
            .unwrap()
            .options
            .engine(4)
            .background_threads
    };
    assert_eq!(
        (threads("0"), threads("3"), threads("-1"), threads("-9")),
        (0, 3, 3, 1)
    );
}
