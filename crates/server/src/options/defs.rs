//! The one table of options: name, type, default, unit, range and effect of each.

use std::path::PathBuf;

use super::{ApiKey, Options};
use crate::logging;

/// One option.
#[derive(Debug)]
pub struct OptionDef {
    /// Path in the file, `section.key`.
    pub key: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// As it would stand in a file; `None` = not set.
    pub default: Option<&'static str>,
    /// Unit of the value; empty if it has none.
    pub unit: &'static str,
    /// What it does.
    pub effect: &'static str,
    /// Puts a value of this kind into the options.
    pub set: fn(&mut Options, Setting),
}

/// Type and range of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text but the empty one.
    Text,
    /// `true` or `false`.
    Bool,
    /// An integer inside these bounds.
    Count {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// As `Count`, or `null` or `auto` to let the server choose.
    CountOrAuto {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// `true`, `false`, or `null` for neither.
    BoolOrUnset,
    /// An integer that may be negative.
    Signed {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A number from 0 to 1.
    Ratio,
    /// A port, or `null` for none.
    PortOrOff,
    /// A secret: not empty, and something that a header of a request can carry.
    Secret,
    /// What the name of a metric may begin with.
    MetricPrefix,
    /// A log level, or a list like `info,flatwater_engine=debug`.
    LogLevel,
}

/// A value of one of the kinds.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// Text.
    Text(String),
    /// Boolean.
    Bool(bool),
    /// Count.
    Count(u64),
    /// Integer.
    Signed(i64),
    /// Number.
    Ratio(f64),
    /// Left to the server.
    Auto,
}

impl Kind {
    /// Reads a value; `None` if it is not of this kind or outside its range.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<Setting> {
        let is_auto = matches!(text, "null" | "auto");
        match self {
            Self::Text => (!text.is_empty()).then(|| Setting::Text(text.to_owned())),
            Self::LogLevel => logging::parse_level(text).map(|_| Setting::Text(text.to_owned())),
            Self::CountOrAuto { .. } | Self::BoolOrUnset if is_auto => Some(Setting::Auto),
            Self::PortOrOff if text == "null" => Some(Setting::Auto),
            Self::PortOrOff => text.parse::<u16>().ok().map(|n| Setting::Count(n.into())),
            Self::Secret => {
                let is_sendable =
                    !text.is_empty() && text.trim() == text && !text.chars().any(char::is_control);
                is_sendable.then(|| Setting::Text(text.to_owned()))
            }
            Self::MetricPrefix => {
                let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
                let goes_on = |c: char| begins(c) || c.is_ascii_digit();
                let is_name = text.starts_with(begins) && text.chars().all(goes_on);
                is_name.then(|| Setting::Text(text.to_owned()))
            }
            Self::Bool | Self::BoolOrUnset => text.parse().ok().map(Setting::Bool),
            Self::Count { min, max } | Self::CountOrAuto { min, max } => text
                .parse()
                .ok()
                .filter(|n| (min..=max).contains(n))
                .map(Setting::Count),
            Self::Signed { min, max } => text
                .parse()
                .ok()
                .filter(|n| (min..=max).contains(n))
                .map(Setting::Signed),
            Self::Ratio => text
                .parse()
                .ok()
                .filter(|n| (0.0..=1.0).contains(n))
                .map(Setting::Ratio),
        }
    }

    /// What is expected, for messages and the page of options.
    #[must_use]
    pub fn range(self) -> String {
        let bounds = |min: String, max: String, largest: String| {
            if max == largest {
                format!("{min} or more")
            } else {
                format!("{min} to {max}")
            }
        };
        match self {
            Self::Text => "text".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::BoolOrUnset => "true, false or null".to_owned(),
            Self::Count { min, max } => bounds(min.to_string(), max.to_string(), ANY.to_string()),
            Self::CountOrAuto { min, max } => {
                let counts = bounds(min.to_string(), max.to_string(), ANY.to_string());
                format!("{counts}, or null for automatic")
            }
            Self::Signed { min, max } => format!("{min} to {max}"),
            Self::Ratio => "0 to 1".to_owned(),
            Self::PortOrOff => "0 to 65535, or null for off".to_owned(),
            Self::Secret => {
                "text that is not empty, without control characters and without spaces at its ends"
                    .to_owned()
            }
            Self::MetricPrefix => {
                "ASCII letters, digits, `_` and `:`, not beginning with a digit".to_owned()
            }
            Self::LogLevel => "error, warn, info, debug, trace, or target=level pairs".to_owned(),
        }
    }
}

/// Bound of counts that have no natural one.
const ANY: u64 = u32::MAX as u64;

impl Setting {
    /// The count; other kinds never reach a setter of counts.
    fn count(self) -> usize {
        match self {
            Self::Count(n) => usize::try_from(n).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    fn count_or_auto(self) -> Option<usize> {
        match self {
            Self::Auto => None,
            other => Some(other.count()),
        }
    }

    fn key(self) -> Option<ApiKey> {
        match self {
            Self::Text(text) => Some(ApiKey::new(text)),
            _ => None,
        }
    }

    fn is_true(&self) -> bool {
        *self == Self::Bool(true)
    }

    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            _ => String::new(),
        }
    }
}

/// Every option, in the order of the page that describes them.
pub static OPTIONS: [OptionDef; 35] = [
    OptionDef {
        key: "log_level",
        kind: Kind::LogLevel,
        default: Some("info"),
        unit: "",
        effect: "What is logged.",
        set: |o, v| o.log_level = v.text(),
    },
    OptionDef {
        key: "telemetry_disabled",
        kind: Kind::Bool,
        default: Some("true"),
        unit: "",
        effect: "Accepted for Qdrant's configurations; nothing is ever reported.",
        set: |_, _| {},
    },
    OptionDef {
        key: "service.host",
        kind: Kind::Text,
        default: Some("0.0.0.0"),
        unit: "",
        effect: "Address to listen on. 127.0.0.1 serves this machine only.",
        set: |o, v| o.service.host = v.text(),
    },
    OptionDef {
        key: "service.http_port",
        kind: Kind::Count {
            min: 0,
            max: 65_535,
        },
        default: Some("6333"),
        unit: "port",
        effect: "Port of the REST interface; 0 takes any free one (the log names it).",
        set: |o, v| o.service.http_port = u16::try_from(v.count()).unwrap_or(u16::MAX),
    },
    OptionDef {
        key: "service.max_request_size_mb",
        kind: Kind::Count { min: 1, max: 4_096 },
        default: Some("32"),
        unit: "MB",
        effect: "Largest body of a REST request, decompressed; a larger one is answered with 400.",
        set: |o, v| o.service.max_request_size_mb = v.count(),
    },
    OptionDef {
        key: "service.grpc_port",
        kind: Kind::PortOrOff,
        default: Some("6334"),
        unit: "port",
        effect: "Port of the gRPC interface; 0 takes any free one (the log names it).",
        set: |o, v| {
            o.service.grpc_port = match v {
                Setting::Count(n) => u16::try_from(n).ok(),
                _ => None,
            };
        },
    },
    OptionDef {
        key: "service.max_grpc_message_size_mb",
        kind: Kind::Count { min: 1, max: 4_095 },
        default: Some("512"),
        unit: "MB",
        effect: "Largest message of a gRPC request; a larger one is answered with \
                 INVALID_ARGUMENT. Qdrant has no limit there, and `service.max_request_size_mb` \
                 does not count for gRPC in either of the two.",
        set: |o, v| o.service.max_grpc_message_size_mb = v.count(),
    },
    OptionDef {
        key: "service.api_key",
        kind: Kind::Secret,
        default: None,
        unit: "",
        effect: "Key that requests must carry, as header or metadata `api-key` or \
                 `authorization: Bearer`. An empty one stops the start. The key travels as it is: \
                 put TLS in front of a port that others reach.",
        set: |o, v| o.service.api_key = v.key(),
    },
    OptionDef {
        key: "service.alt_api_key",
        kind: Kind::Secret,
        default: None,
        unit: "",
        effect: "Another key that may do everything, for the time of a change of keys.",
        set: |o, v| o.service.alt_api_key = v.key(),
    },
    OptionDef {
        key: "service.read_only_api_key",
        kind: Kind::Secret,
        default: None,
        unit: "",
        effect: "Key that may read; a write with it is a 403 (PERMISSION_DENIED).",
        set: |o, v| o.service.read_only_api_key = v.key(),
    },
    OptionDef {
        key: "service.metrics_prefix",
        kind: Kind::MetricPrefix,
        default: None,
        unit: "",
        effect: "What the names of all series of `/metrics` begin with, as it is: `qdrant_` makes \
                 `qdrant_collections_total`.",
        set: |o, v| o.service.metrics_prefix = v.text(),
    },
    OptionDef {
        key: "service.metrics_port",
        kind: Kind::PortOrOff,
        default: Some("null"),
        unit: "port",
        effect: "Port that serves `/metrics` alone, without a key, as in Qdrant; 0 takes any free \
                 one (the log names it).",
        set: |o, v| {
            o.service.metrics_port = match v {
                Setting::Count(n) => u16::try_from(n).ok(),
                _ => None,
            };
        },
    },
    OptionDef {
        key: "service.enable_cors",
        kind: Kind::Bool,
        default: Some("true"),
        unit: "",
        effect: "Whether pages of any origin may call from a browser.",
        set: |o, v| o.service.enable_cors = v.is_true(),
    },
    OptionDef {
        key: "storage.storage_path",
        kind: Kind::Text,
        default: Some("./storage"),
        unit: "",
        effect: "Folder that holds all data; created when missing.",
        set: |o, v| o.storage_path = PathBuf::from(v.text()),
    },
    OptionDef {
        key: "storage.on_disk_payload",
        kind: Kind::Bool,
        default: Some("true"),
        unit: "",
        effect: "Default of `on_disk_payload` of new collections; stored and shown.",
        set: |o, v| o.collection.on_disk_payload = v.is_true(),
    },
    OptionDef {
        key: "storage.performance.max_search_threads",
        kind: Kind::Count { min: 0, max: 4_096 },
        default: Some("0"),
        unit: "threads",
        effect: "Threads that run searches and other reads; 0 means one per core.",
        set: |o, v| o.performance.max_search_threads = v.count(),
    },
    OptionDef {
        key: "storage.performance.search_queue_max",
        kind: Kind::Count {
            min: 1_024,
            max: 1_048_576,
        },
        default: Some("4096"),
        unit: "searches",
        effect: "Searches that may wait for a thread; past it they get 429 with Retry-After.",
        set: |o, v| o.performance.search_queue_max = v.count(),
    },
    OptionDef {
        key: "storage.performance.search_timeout_sec",
        kind: Kind::Count { min: 1, max: ANY },
        default: Some("60"),
        unit: "s",
        effect: "Time limit of a read whose request has no `timeout`; past it, 408.",
        set: |o, v| o.performance.search_timeout_sec = v.count() as u64,
    },
    OptionDef {
        key: "storage.performance.optimizer_cpu_budget",
        kind: Kind::Signed {
            min: -4_096,
            max: 4_096,
        },
        default: Some("0"),
        unit: "threads",
        effect: "Threads of background work, which runs at the lowest priority; 0 means one per \
                 core, a negative number so many fewer (at least one stays).",
        set: |o, v| {
            if let Setting::Signed(n) = v {
                o.performance.optimizer_cpu_budget = n;
            }
        },
    },
    OptionDef {
        key: "storage.wal.wal_capacity_mb",
        kind: Kind::Count { min: 1, max: ANY },
        default: Some("32"),
        unit: "MB",
        effect: "Size of a log file of new collections.",
        set: |o, v| o.collection.wal.wal_capacity_mb = v.count(),
    },
    OptionDef {
        key: "storage.wal.wal_segments_ahead",
        kind: Kind::Count { min: 0, max: ANY },
        default: Some("0"),
        unit: "files",
        effect: "Stored and shown, as in Qdrant; no log file is made ahead.",
        set: |o, v| o.collection.wal.wal_segments_ahead = v.count(),
    },
    OptionDef {
        key: "storage.wal.wal_retain_closed",
        kind: Kind::Count { min: 1, max: ANY },
        default: Some("1"),
        unit: "files",
        effect: "Stored and shown, as in Qdrant.",
        set: |o, v| o.collection.wal.wal_retain_closed = v.count(),
    },
    OptionDef {
        key: "storage.optimizers.deleted_threshold",
        kind: Kind::Ratio,
        default: Some("0.2"),
        unit: "share",
        effect: "Share of deleted points past which a segment is vacuumed.",
        set: |o, v| {
            if let Setting::Ratio(n) = v {
                o.collection.optimizers.deleted_threshold = n;
            }
        },
    },
    OptionDef {
        key: "storage.optimizers.vacuum_min_vector_number",
        kind: Kind::Count { min: 100, max: ANY },
        default: Some("1000"),
        unit: "points",
        effect: "Points a segment needs before it is vacuumed.",
        set: |o, v| o.collection.optimizers.vacuum_min_vector_number = v.count(),
    },
    OptionDef {
        key: "storage.optimizers.default_segment_number",
        kind: Kind::Count { min: 0, max: 4_096 },
        default: Some("0"),
        unit: "segments",
        effect: "Segments that merging aims for; 0 lets the server choose.",
        set: |o, v| o.collection.optimizers.default_segment_number = v.count(),
    },
    OptionDef {
        key: "storage.optimizers.max_segment_size_kb",
        kind: Kind::CountOrAuto { min: 1, max: ANY },
        default: Some("null"),
        unit: "KB of 1,024 bytes",
        effect: "Vectors a segment holds before the next one is started.",
        set: |o, v| o.collection.optimizers.max_segment_size = v.count_or_auto(),
    },
    OptionDef {
        key: "storage.optimizers.memmap_threshold_kb",
        kind: Kind::CountOrAuto { min: 0, max: ANY },
        default: Some("null"),
        unit: "KB of 1,024 bytes",
        effect: "Stored and shown; vectors are always in mapped files.",
        set: |o, v| o.collection.optimizers.memmap_threshold = v.count_or_auto(),
    },
    OptionDef {
        key: "storage.optimizers.indexing_threshold_kb",
        kind: Kind::Count { min: 0, max: ANY },
        default: Some("10000"),
        unit: "KB of 1,024 bytes",
        effect: "Vectors outside the graph from which indexing starts; 0 means never.",
        set: |o, v| o.collection.optimizers.indexing_threshold = v.count(),
    },
    OptionDef {
        key: "storage.optimizers.flush_interval_sec",
        kind: Kind::Count { min: 0, max: ANY },
        default: Some("5"),
        unit: "s",
        effect: "Longest time until the log is synced when no request waits for it.",
        set: |o, v| o.collection.optimizers.flush_interval_sec = v.count() as u64,
    },
    OptionDef {
        key: "storage.optimizers.max_optimization_threads",
        kind: Kind::CountOrAuto { min: 0, max: 4_096 },
        default: Some("null"),
        unit: "jobs",
        effect: "Background jobs a collection may run at once; 0 stops them.",
        set: |o, v| o.collection.optimizers.max_optimization_threads = v.count_or_auto(),
    },
    OptionDef {
        key: "storage.hnsw_index.m",
        kind: Kind::Count { min: 0, max: 4_096 },
        default: Some("16"),
        unit: "links",
        effect: "Links of a node above level 0, which has twice as many. More: better recall, more \
                 memory, slower build.",
        set: |o, v| o.collection.hnsw.m = v.count(),
    },
    OptionDef {
        key: "storage.hnsw_index.ef_construct",
        kind: Kind::Count { min: 4, max: ANY },
        default: Some("100"),
        unit: "candidates",
        effect: "Beam width while building, and of searches that set none. More: better recall, \
                 slower build.",
        set: |o, v| o.collection.hnsw.ef_construct = v.count(),
    },
    OptionDef {
        key: "storage.hnsw_index.full_scan_threshold_kb",
        kind: Kind::Count { min: 10, max: ANY },
        default: Some("10000"),
        unit: "KB of 1,024 bytes",
        effect: "Below this size of vectors a full scan replaces the graph.",
        set: |o, v| o.collection.hnsw.full_scan_threshold = v.count(),
    },
    OptionDef {
        key: "storage.hnsw_index.max_indexing_threads",
        kind: Kind::Count { min: 0, max: 4_096 },
        default: Some("0"),
        unit: "threads",
        effect: "Threads that build one graph; 0 lets the server choose.",
        set: |o, v| o.collection.hnsw.max_indexing_threads = v.count(),
    },
    OptionDef {
        key: "storage.hnsw_index.on_disk",
        kind: Kind::BoolOrUnset,
        default: Some("null"),
        unit: "",
        effect: "Stored and shown; it does not change results.",
        set: |o, v| {
            o.collection.hnsw.on_disk = match v {
                Setting::Bool(flag) => Some(flag),
                _ => None,
            };
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_of_its_own_kind() {
        for def in &OPTIONS {
            let parsed = def.default.map(|default| def.kind.parse(default));
            assert!(parsed != Some(None), "{}: {:?}", def.key, def.default);
            assert!(
                def.effect.ends_with('.') && !def.range_is_empty(),
                "{}",
                def.key
            );
        }
    }

    impl OptionDef {
        fn range_is_empty(&self) -> bool {
            self.kind.range().is_empty()
        }
    }

    #[test]
    fn keys_are_unique() {
        let mut keys: Vec<_> = OPTIONS.iter().map(|def| def.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), OPTIONS.len());
    }

    #[test]
    fn values_outside_their_range_are_not_read() {
        assert_eq!(Kind::Count { min: 4, max: 9 }.parse("3"), None);
        assert_eq!(
            Kind::Count { min: 4, max: 9 }.parse("4"),
            Some(Setting::Count(4))
        );
        assert_eq!(Kind::Count { min: 4, max: 9 }.parse("null"), None);
        assert_eq!(
            Kind::CountOrAuto { min: 1, max: 9 }.parse("null"),
            Some(Setting::Auto)
        );
        assert_eq!(Kind::CountOrAuto { min: 1, max: 9 }.parse("0"), None);
        assert_eq!(Kind::Ratio.parse("1.1"), None);
        assert_eq!(Kind::Ratio.parse("NaN"), None);
        assert_eq!(Kind::Bool.parse("yes"), None);
        assert_eq!(
            Kind::Signed { min: -2, max: 2 }.parse("-2"),
            Some(Setting::Signed(-2))
        );
        assert_eq!(Kind::LogLevel.parse("loud"), None);
        assert!(Kind::LogLevel.parse("INFO").is_some());
        assert_eq!(Kind::Text.parse(""), None);
        assert_eq!(Kind::PortOrOff.parse("65536"), None);
        assert_eq!(Kind::PortOrOff.parse("null"), Some(Setting::Auto));
        for bad in ["", " ", "a ", "a\nb"] {
            assert_eq!(Kind::Secret.parse(bad), None, "{bad:?}");
        }
        assert!(Kind::Secret.parse("a b").is_some());
        for bad in ["", "1a", "a-b", "a b", "\u{e4}"] {
            assert_eq!(Kind::MetricPrefix.parse(bad), None, "{bad:?}");
        }
        assert!(Kind::MetricPrefix.parse("qdrant_1:").is_some());
    }
}
