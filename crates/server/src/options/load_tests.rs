use serde_json::json;

use super::*;
use crate::options::ApiKey;

fn layers(file: Value, env: &[(&str, &str)]) -> Result<Loaded, OptionsError> {
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    from_layers(vec![("config.yaml".to_owned(), file)], env)
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
fn security_settings_that_are_not_served_stop_the_start_and_are_named() {
    for (file, key) in [
        (json!({"service": {"jwt_rbac": true}}), "service.jwt_rbac"),
        (
            json!({"service": {"enable_tls": true}}),
            "service.enable_tls",
        ),
        (
            json!({"service": {"verify_https_client_certificate": true}}),
            "service.verify_https_client_certificate",
        ),
        (
            json!({"cluster": {"p2p": {"enable_tls": true}}}),
            "cluster.p2p.enable_tls",
        ),
    ] {
        let text = layers(file, &[]).unwrap_err().to_string();
        assert!(text.contains(&format!("`{key}`")), "{text}");
    }
    for name in [
        "FLATWATER__SERVICE__ENABLE_TLS",
        "QDRANT__SERVICE__ENABLE_TLS",
    ] {
        assert!(matches!(
            layers(json!({}), &[(name, "true")]),
            Err(OptionsError::Security { .. })
        ));
    }
    let off = json!({
        "service": {"enable_tls": false, "jwt_rbac": null},
        "tls": {"cert": "./tls/cert.pem", "cert_ttl": 3600},
    });
    assert_eq!(layers(off, &[]).unwrap().warnings, Vec::<String>::new());
}

#[test]
fn keys_are_taken_from_file_and_environment_and_a_null_of_a_file_is_none() {
    let file = json!({"service": {
        "api_key": "from-file", "read_only_api_key": 31415, "alt_api_key": null,
    }});
    let service = layers(file.clone(), &[]).unwrap().options.service;
    assert_eq!(service.api_key, Some(ApiKey::new("from-file")));
    assert_eq!(service.read_only_api_key, Some(ApiKey::new("31415")));
    assert_eq!(service.alt_api_key, None);
    assert!(service.is_guarded());
    let env = [("QDRANT__SERVICE__API_KEY", "from-env")];
    let service = layers(file, &env).unwrap().options.service;
    assert_eq!(service.api_key, Some(ApiKey::new("from-env")));
    assert!(!layers(json!({}), &[]).unwrap().options.service.is_guarded());
}

#[test]
fn a_key_that_protects_nothing_stops_the_start_and_is_not_shown() {
    for key in ["api_key", "alt_api_key", "read_only_api_key"] {
        for bad in ["", " ", "null", "hunter2 ", "hunter2\n"] {
            let name = format!("QDRANT__SERVICE__{}", key.to_uppercase());
            let file = json!({"service": {key: bad}});
            for error in [
                layers(json!({}), &[(&name, bad)]).unwrap_err().to_string(),
                layers(file, &[]).unwrap_err().to_string(),
            ] {
                assert!(error.contains(&format!("`service.{key}`")), "{error}");
                assert!(
                    error.contains("not empty") && !error.contains("hunter2"),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn qdrants_variables_are_read_and_ours_win_over_them() {
    let env = [
        ("QDRANT__SERVICE__HTTP_PORT", "7001"),
        ("QDRANT__SERVICE__GRPC_PORT", "7002"),
        ("QDRANT__STORAGE__OPTIMIZERS__INDEXING_THRESHOLD_KB", "7"),
        ("QDRANT__LOG_LEVEL", "debug"),
        ("FLATWATER__SERVICE__HTTP_PORT", "8001"),
    ];
    let file = json!({"service": {"http_port": 6001, "grpc_port": null}, "log_level": "ERROR"});
    let Loaded { options, warnings } = layers(file.clone(), &env).unwrap();
    assert_eq!(
        (options.service.http_port, options.service.grpc_port),
        (8001, Some(7002))
    );
    assert_eq!(options.collection.optimizers.indexing_threshold, 7);
    assert_eq!(options.log_level, "debug");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(layers(file, &[]).unwrap().options.service.grpc_port, None);
    let text = layers(json!({}), &[("QDRANT__SERVICE__HTTP_PORT", "x")])
        .unwrap_err()
        .to_string();
    assert!(
        text.starts_with("QDRANT__SERVICE__HTTP_PORT: invalid value `x`"),
        "{text}"
    );
}

#[test]
fn keys_not_served_and_unknown_keys_are_warned_of_once_each() {
    let file = json!({
        "service": {"hardware_reporting": true, "colour": "red"},
        "storage": {"snapshots_path": "/mnt/s", "performance": {"update_rate_limit": null}},
        "cluster": {"enabled": false, "p2p": {"port": 7335}},
    });
    let warnings = layers(file, &[("QDRANT__SERVICE__SLOW_QUERY_SECS", "1")])
        .unwrap()
        .warnings;
    let expected = [
        "`cluster.p2p.port` is not served yet",
        "unknown option `service.colour`",
        "`service.hardware_reporting` is not served yet",
        "`storage.snapshots_path` is not served yet",
        "QDRANT__SERVICE__SLOW_QUERY_SECS: `service.slow_query_secs` is not served yet",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
    for (warning, part) in warnings.iter().zip(expected) {
        assert!(warning.contains(part), "{warning}");
    }
}

#[test]
fn a_file_with_what_qdrant_ships_is_taken_without_a_word() {
    let file = json!({
        "log_level": "INFO",
        "telemetry_disabled": false,
        "storage": {
            "storage_path": "./storage", "snapshots_path": "./snapshots",
            "snapshots_config": {"snapshots_storage": "local"}, "temp_path": null,
            "on_disk_payload": true, "update_concurrency": null, "node_type": "Normal",
            "wal": {"wal_capacity_mb": 32, "wal_segments_ahead": 0},
            "performance": {"max_search_threads": 0, "optimizer_cpu_budget": 0,
                            "update_rate_limit": null},
            "optimizers": {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000,
                           "default_segment_number": 0, "max_segment_size_kb": null,
                           "indexing_threshold_kb": 10000, "flush_interval_sec": 5,
                           "max_optimization_threads": null},
            "hnsw_index": {"m": 16, "ef_construct": 100, "full_scan_threshold_kb": 10000,
                           "max_indexing_threads": 0, "on_disk": false, "payload_m": null},
            "shard_transfer_method": null, "max_collections": null,
            "collection": {"replication_factor": 1, "write_consistency_factor": 1,
                           "vectors": {"on_disk": null}, "quantization": null},
        },
        "service": {"max_request_size_mb": 32, "max_workers": 0, "host": "0.0.0.0",
                    "http_port": 6333, "grpc_port": 6334, "enable_cors": true,
                    "enable_tls": false, "verify_https_client_certificate": false},
        "cluster": {"enabled": false, "p2p": {"port": 6335, "enable_tls": false},
                    "consensus": {"tick_period_ms": 100, "compact_wal_entries": 128}},
        "per_collection_metrics_enabled": true,
        "tls": {"cert": "./tls/cert.pem", "key": "./tls/key.pem",
                "ca_cert": "./tls/cacert.pem", "cert_ttl": 3600},
    });
    let loaded = layers(file, &[]).unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert_eq!(loaded.options.service.grpc_port, Some(6334));
    assert!(!loaded.options.service.is_guarded());
}

#[test]
fn later_files_win_and_the_first_extension_is_taken() {
    let files = [("a", 1), ("b", 2)].map(|(name, port)| {
        (
            name.to_owned(),
            json!({"service": {"http_port": port, "host": name}}),
        )
    });
    let loaded = from_layers(files.to_vec(), std::iter::empty()).unwrap();
    assert_eq!(loaded.options.service.http_port, 2);
    assert_eq!(loaded.options.service.host, "b");
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(find_file(folder.path(), "production"), None);
    for extension in ["json", "yaml"] {
        std::fs::write(folder.path().join(format!("production.{extension}")), "{}").unwrap();
    }
    assert_eq!(
        find_file(folder.path(), "production"),
        Some(folder.path().join("production.yaml"))
    );
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
        let loaded = from_layers(vec![(name.to_owned(), tree)], std::iter::empty()).unwrap();
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
