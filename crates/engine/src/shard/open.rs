//! Opening a shard: the way back from what is on disk.
//!
//! 1. The manifest names the segments that count and the `seq` up to which they are complete.
//! 2. Each listed segment opens at its own checkpoint; directories that are not listed are removed.
//! 3. The log is replayed from there; operations that a segment holds already change nothing. The indexes
//!    of fields are built: they are kept in memory only.
//! 4. The first view is published and the threads start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;

use arc_swap::ArcSwap;
use crossbeam_channel::unbounded;
use flatwater_segment::dir::Directory;
use flatwater_segment::durable;
use flatwater_segment::parts::spec::SegmentSpec;
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use super::apply::Segments;
use super::checkpoint::{Checkpointer, StopFlag};
use super::manifest::Manifest;
use super::op::LogOp;
use super::schema;
use super::sync::LogThread;
use super::writer::Writer;
use super::{Health, Shard, ShardShared, Threads, command_queue, interval_ms};
use crate::error::{EngineError, Result};
use crate::pool::bell::Bell;
use crate::wal::{Wal, WalOptions};

/// What a shard needs to know to open.
#[derive(Clone, Debug)]
pub struct ShardOptions {
    /// Vectors and size of its segments.
    pub spec: Arc<SegmentSpec>,
    /// Size of a log file, bytes.
    pub log_file_bytes: u64,
    /// Longest time between syncs of the log.
    pub flush_interval: Duration,
    /// Rung whenever there may be work for the background.
    pub background: Bell,
}

/// Log files that may pile up before a checkpoint is taken: two make a restart replay at most a few
/// ten MB, and a checkpoint is not taken more often than its cost is worth.
const LOG_FILES_PER_CHECKPOINT: u64 = 2;

impl Shard {
    /// Opens the shard in `dir`, recovering what is there. Blocks for the replay.
    ///
    /// # Errors
    /// `Corrupt` with file and offset if acknowledged bytes do not check; `Io`, `DiskFull`.
    pub fn open(dir: &Arc<dyn Directory>, options: &ShardOptions) -> Result<Self> {
        let manifest = Manifest::read(dir.as_ref())?.unwrap_or_default();
        // A killed process may have left the name of this manifest unsynced. What it does not list is removed
        // below, so the one before must not come back.
        dir.sync()?;
        let mut segments = open_segments(dir, options, &manifest)?;
        let (wal, replayed_bytes) = replay_log(dir, options, &mut segments)?;
        segments.build_missing_indexes()?;
        let view = segments.view();
        let shared = Arc::new(ShardShared {
            view: ArcSwap::from_pointee(view),
            health: Health::default(),
            background: options.background.clone(),
            spec: ArcSwap::new(Arc::clone(&options.spec)),
            flush_interval_ms: AtomicU64::new(interval_ms(options.flush_interval)),
            segments_dir: Arc::clone(&segments.dir),
            manifest_is_stale: AtomicBool::new(false),
            retired: Mutex::default(),
            leftovers: Mutex::default(),
            checkpoint_bell: Bell::default(),
            // What was replayed is in no checkpoint yet: a process that is killed again and again must not
            // find a longer log each time.
            unrecorded_bytes: AtomicU64::new(replayed_bytes),
            unrecorded_bytes_max: LOG_FILES_PER_CHECKPOINT * options.log_file_bytes,
            writer_is_gone: AtomicBool::new(false),
            queued: AtomicUsize::new(0),
            queued_bytes: Mutex::new(0),
            queue_has_room: Condvar::new(),
        });
        start_threads(dir, shared, segments, wal, manifest)
    }
}

fn open_segments(
    dir: &Arc<dyn Directory>,
    options: &ShardOptions,
    manifest: &Manifest,
) -> Result<Segments> {
    let segments_dir = dir.subdir("segments")?;
    segments_dir.sweep()?;
    dir.sweep()?;
    for name in segments_dir.subdirs()? {
        let is_listed = name
            .parse::<Uuid>()
            .is_ok_and(|id| manifest.segments.contains(&id));
        if !is_listed {
            segments_dir.remove_subdir(&name)?;
        }
    }
    let mut writers = Vec::new();
    for id in &manifest.segments {
        let segment_dir = segments_dir.subdir(&id.to_string())?;
        writers.push(durable::recover(
            segment_dir,
            *id,
            Arc::clone(&options.spec),
        )?);
    }
    let schemas = manifest
        .fields
        .iter()
        .map(|r| (r.field.clone(), schema::from_record(r)))
        .collect();
    Ok(Segments {
        dir: segments_dir,
        spec: Arc::clone(&options.spec),
        writers,
        schemas: Arc::new(schemas),
        applied: manifest.seq,
    })
}

/// The log, replayed, and how many bytes of operations that were.
fn replay_log(
    dir: &Arc<dyn Directory>,
    options: &ShardOptions,
    segments: &mut Segments,
) -> Result<(Wal, u64)> {
    let log_dir = dir.subdir("wal")?;
    let recorded = segments
        .writers
        .iter()
        .map(|writer| writer.segment().recorded_seq());
    let wal_options = WalOptions {
        file_bytes: options.log_file_bytes,
        floor: segments.applied,
        synced: recorded.fold(segments.applied, u64::max),
    };
    let (mut replayed, mut replayed_bytes) = (0u64, 0u64);
    let (wal, outcome) = Wal::open(log_dir, wal_options, &mut |seq, body| {
        let op = LogOp::decode(body).map_err(|damage| record_damage(seq, &damage))?;
        replayed += 1;
        replayed_bytes += body.len() as u64;
        if replayed.is_multiple_of(1000) {
            tracing::info!(replayed, seq, "replaying the log");
        }
        segments.replay(seq, op)
    })?;
    if let Some(cut) = &outcome.cut {
        tracing::warn!(
            file = cut.file,
            offset = cut.offset,
            bytes = cut.bytes,
            detail = cut.detail,
            "the log ended in bytes that were never acknowledged as synced; they were cut off"
        );
    }
    // Replay is complete only if the log reaches as far as it says.
    segments.applied = segments.applied.max(outcome.last_seq);
    if replayed > 0 {
        tracing::info!(replayed, seq = segments.applied, "log replayed");
    }
    Ok((wal, replayed_bytes))
}

/// Reads the log of the shard in `dir` and decodes each record that no listed segment holds; changes
/// nothing. Answers how many there are.
pub(crate) fn check_shard_log(dir: &Arc<dyn Directory>, manifest: &Manifest) -> Result<u64> {
    if !dir.exists("wal")? {
        return Ok(0);
    }
    let options = WalOptions {
        file_bytes: u64::MAX,
        floor: manifest.seq,
        synced: manifest.seq,
    };
    Wal::check(dir.subdir("wal")?.as_ref(), options, &mut |seq, body| {
        LogOp::decode(body)
            .map(drop)
            .map_err(|damage| record_damage(seq, &damage))
    })
}

fn record_damage(seq: u64, damage: &flatwater_segment::file::Damage) -> EngineError {
    EngineError::Corrupt {
        file: format!("log record {seq}"),
        offset: damage.offset,
        detail: damage.to_string(),
    }
}

fn start_threads(
    dir: &Arc<dyn Directory>,
    shared: Arc<ShardShared>,
    segments: Segments,
    wal: Wal,
    recorded: Manifest,
) -> Result<Shard> {
    let (queue, commands) = command_queue();
    let (log_queue, log_messages) = unbounded();
    let sync = wal.syncer();
    let log = LogThread {
        shared: Arc::clone(&shared),
        wal: Arc::clone(&sync),
        queue: log_messages,
    };
    let stop = Arc::new(StopFlag::default());
    let checkpointer = Checkpointer {
        shared: Arc::clone(&shared),
        dir: Arc::clone(dir),
        wal: sync,
        stop: Arc::clone(&stop),
        recorded,
    };
    let writer = Writer {
        shared: Arc::clone(&shared),
        segments,
        wal,
        queue: commands,
        log_thread: log_queue.clone(),
        waiting: BTreeMap::new(),
    };
    let threads = Threads {
        writer: spawn("shard-writer", &shared, move || writer.run())?,
        log: spawn("shard-log", &shared, move || log.run())?,
        log_queue,
        checkpoint: spawn("shard-checkpoint", &shared, move || checkpointer.run())?,
        checkpoint_stop: stop,
    };
    Ok(Shard {
        shared,
        queue,
        threads: Mutex::new(Some(threads)),
    })
}

/// Starts a thread whose panic refuses further writes instead of passing unnoticed.
fn spawn(
    name: &'static str,
    shared: &Arc<ShardShared>,
    body: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err() {
                shared.health.poison(&format!("thread {name} panicked"));
            }
        })
        .map_err(|source| EngineError::Io {
            operation: "starting a thread of the shard",
            path: std::path::PathBuf::from(name),
            source,
        })
}
