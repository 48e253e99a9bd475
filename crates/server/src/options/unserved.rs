//! Keys that Qdrant knows and this version does not serve.

/// What becomes of the start when such a key is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing: the key has no effect in Qdrant either, unless another key turns it on.
    None,
    /// A warning: data stays as safe as without it.
    Warn,
    /// No start: who set it would believe that the server is protected, and it is not.
    Stop,
}

/// Keys and whole sections (those that end with a dot).
const KEYS: [(&str, Consequence); 36] = [
    ("service.jwt_rbac", Consequence::Stop),
    ("service.enable_tls", Consequence::Stop),
    ("service.verify_https_client_certificate", Consequence::Stop),
    ("cluster.p2p.enable_tls", Consequence::Stop),
    // Paths of certificates, which every file of Qdrant's carries; `enable_tls` makes use of them.
    ("tls.", Consequence::None),
    ("service.max_workers", Consequence::Warn),
    ("service.enable_static_content", Consequence::Warn),
    ("service.static_content_dir", Consequence::Warn),
    ("service.slow_query_secs", Consequence::Warn),
    ("service.hardware_reporting", Consequence::Warn),
    ("service.enable_snapshot_url_recovery", Consequence::Warn),
    ("storage.snapshots_path", Consequence::Warn),
    ("storage.snapshots_config.", Consequence::Warn),
    ("storage.temp_path", Consequence::Warn),
    ("storage.update_concurrency", Consequence::Warn),
    ("storage.update_queue_size", Consequence::Warn),
    ("storage.node_type", Consequence::Warn),
    ("storage.performance.", Consequence::Warn),
    ("storage.optimizers.prevent_unoptimized", Consequence::Warn),
    ("storage.optimizers_overwrite.", Consequence::Warn),
    ("storage.hnsw_index.", Consequence::Warn),
    ("storage.hnsw_global_config.", Consequence::Warn),
    ("storage.collection.", Consequence::Warn),
    ("storage.max_collections", Consequence::Warn),
    ("storage.quotas.", Consequence::Warn),
    ("storage.low_memory_mode", Consequence::Warn),
    ("storage.recovery_mode", Consequence::Warn),
    ("storage.shard_transfer_method", Consequence::Warn),
    ("storage.handle_collection_load_errors", Consequence::Warn),
    ("cluster.", Consequence::Warn),
    ("logger.", Consequence::Warn),
    ("audit.", Consequence::Warn),
    ("gpu.", Consequence::Warn),
    ("inference.", Consequence::Warn),
    ("feature_flags.", Consequence::Warn),
    ("per_collection_metrics_enabled", Consequence::Warn),
];

/// Values that ask for nothing that is not so here: those of the file that Qdrant ships. A warning
/// about them would bury the warnings that matter.
const AS_IT_IS: [(&str, &str); 10] = [
    ("service.max_workers", "0"),
    ("storage.snapshots_path", "./snapshots"),
    ("storage.snapshots_config.snapshots_storage", "local"),
    ("storage.node_type", "Normal"),
    ("storage.collection.replication_factor", "1"),
    ("storage.collection.write_consistency_factor", "1"),
    ("cluster.p2p.port", "6335"),
    ("cluster.consensus.tick_period_ms", "100"),
    ("cluster.consensus.compact_wal_entries", "128"),
    ("per_collection_metrics_enabled", "true"),
];

/// What setting `key` to `value` does; `None` if Qdrant does not know the key either.
pub(super) fn consequence(key: &str, value: &str) -> Option<Consequence> {
    let matches = |known: &str| {
        if known.ends_with('.') {
            key.starts_with(known)
        } else {
            key == known
        }
    };
    let found = KEYS
        .into_iter()
        .find_map(|(known, consequence)| matches(known).then_some(consequence))?;
    let is_off = matches!(value, "null" | "false");
    if is_off || AS_IT_IS.contains(&(key, value)) {
        return Some(Consequence::None);
    }
    Some(found)
}
