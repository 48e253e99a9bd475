//! A shard: one log, one writer, immutable views.
//!
//! 1. `op`, `edit` and `schema`: what the log holds.
//! 2. `apply`: the deterministic effect of an operation on the segments.
//! 3. `writer`: the one thread that logs, applies and publishes views.
//! 4. `sync`: the thread that makes the log durable and acknowledges.
//! 5. `resolve`: filters of updates become ids.
//! 6. `checkpoint` and `open`: durable states, and the way back from them.
//! 7. `rewrite`: segments become immutable files, and are exchanged for others. `index`: a field is
//!    indexed while writes go on.
//! 8. `view`: what a read sees.

mod apply;
mod checkpoint;
mod edit;
pub(crate) mod index;
pub(crate) mod manifest;
pub mod op;
mod open;
mod resolve;
mod rewrite;
pub mod schema;
mod sync;
pub mod view;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use crossbeam_channel::{Sender, bounded, unbounded};
use flatwater_segment::dir::Directory;
use flatwater_segment::growing::write::NewRow;
use flatwater_segment::parts::Segment;
use flatwater_segment::parts::spec::SegmentSpec;
use flatwater_segment::payload::eval::CompiledFilter;
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use crate::error::{EngineError, Result};
use crate::pool::bell::Bell;
use crate::update::OnAck;
use op::{FieldIndexRecord, PayloadEdit};
use resolve::Candidates;
use sync::LogMessage;
use view::ShardView;
use writer::{Command, Prepared, Targets};

pub(crate) use apply::{compile, parse_path};
pub use open::ShardOptions;
pub(crate) use open::check_shard_log;

/// Updates that may wait for the writer; as many as Qdrant lets wait.
const QUEUE_MAX: usize = 200;

/// Bytes of updates that may wait for the writer. Past it submitters wait: a flood of large bodies
/// must not fill the memory. One update larger than this still passes, alone.
const QUEUE_BYTES_MAX: usize = 256 << 20;

/// How often a submitter that waits for room looks whether the writer is still there.
const QUEUE_LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Whether the shard may still take writes.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failure: Mutex<Option<String>>,
}

impl Health {
    /// Refuses every further write; the first reason is kept.
    pub(crate) fn poison(&self, reason: &str) {
        let mut failure = self.failure.lock();
        if failure.is_none() {
            tracing::error!(reason, "writes are refused from now on; restart to recover");
            *failure = Some(reason.to_owned());
        }
    }

    /// Refuses every further write without a word: the collection is being deleted.
    fn close(&self) {
        self.failure
            .lock()
            .get_or_insert_with(|| "the collection was deleted".to_owned());
    }

    /// `Poisoned` with the reason, if there was a failure.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.failure.lock() {
            Some(reason) => Err(EngineError::Poisoned(reason.clone())),
            None => Ok(()),
        }
    }
}

/// What the threads of a shard share.
#[derive(Debug)]
pub(crate) struct ShardShared {
    pub(crate) view: ArcSwap<ShardView>,
    pub(crate) health: Health,
    /// Wakes the engine's background thread.
    pub(crate) background: Bell,
    /// What the next segment is made of.
    spec: ArcSwap<SegmentSpec>,
    /// Longest time between syncs of the log, milliseconds.
    flush_interval_ms: AtomicU64,
    segments_dir: Arc<dyn Directory>,
    checkpoint_bell: Bell,
    /// Set when the list of segments is another than the manifest's.
    manifest_is_stale: AtomicBool,
    /// Segments that were replaced; the checkpoint thread frees them when no view holds them, so that
    /// no search has to unmap.
    retired: Mutex<Vec<Arc<Segment>>>,
    /// Segments that were replaced and whose files are still there.
    leftovers: Mutex<Vec<Uuid>>,
    /// Bytes logged since the last checkpoint, and how many of them call for one.
    unrecorded_bytes: AtomicU64,
    unrecorded_bytes_max: u64,
    /// Nothing is taken from the queue any more.
    writer_is_gone: AtomicBool,
    queued: AtomicUsize,
    queued_bytes: Mutex<usize>,
    queue_has_room: Condvar,
}

impl ShardShared {
    fn enter_queue(&self, bytes: usize) {
        let mut queued = self.queued_bytes.lock();
        let is_full = |queued_bytes: usize| {
            let too_many = self.queued.load(Ordering::Relaxed) >= QUEUE_MAX;
            queued_bytes > 0 && (too_many || queued_bytes + bytes > QUEUE_BYTES_MAX)
        };
        while is_full(*queued) && !self.writer_is_gone.load(Ordering::Acquire) {
            if self.health.check().is_err() {
                break;
            }
            self.queue_has_room
                .wait_for(&mut queued, QUEUE_LOOK_INTERVAL);
        }
        *queued += bytes;
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    fn leave_queue(&self, bytes: usize) {
        let mut queued = self.queued_bytes.lock();
        *queued -= bytes;
        self.queued.fetch_sub(1, Ordering::Relaxed);
        self.queue_has_room.notify_all();
    }

    fn wants_checkpoint(&self) -> bool {
        self.unrecorded_bytes.load(Ordering::Relaxed) > self.unrecorded_bytes_max
            || self.manifest_is_stale.load(Ordering::Acquire)
    }
}

/// A shard that is open.
#[derive(Debug)]
pub struct Shard {
    shared: Arc<ShardShared>,
    queue: Sender<Command>,
    threads: Mutex<Option<Threads>>,
}

#[derive(Debug)]
struct Threads {
    writer: JoinHandle<()>,
    log: JoinHandle<()>,
    log_queue: Sender<LogMessage>,
    checkpoint: JoinHandle<()>,
    checkpoint_stop: Arc<checkpoint::StopFlag>,
}

impl Shard {
    /// The newest view. Lock-free.
    #[must_use]
    pub fn view(&self) -> Arc<ShardView> {
        self.shared.view.load_full()
    }

    pub(crate) fn shared(&self) -> &Arc<ShardShared> {
        &self.shared
    }

    /// What the next segment is made of.
    pub(crate) fn spec(&self) -> Arc<SegmentSpec> {
        self.shared.spec.load_full()
    }

    /// Takes new settings: for the next segment, and for the log at once.
    pub(crate) fn reconfigure(&self, spec: SegmentSpec, flush_interval: Duration) {
        self.shared.spec.store(Arc::new(spec));
        let interval_ms = interval_ms(flush_interval);
        self.shared
            .flush_interval_ms
            .store(interval_ms, Ordering::Relaxed);
        self.shared.background.ring();
    }

    /// Updates that wait for the writer.
    #[must_use]
    pub fn queue_len(&self) -> usize {
        self.shared.queued.load(Ordering::Relaxed)
    }

    /// Stores points. `rows` hold no id twice, `body` is [`op::encode_rows`] of them.
    ///
    /// # Errors
    /// `Stopping`, or `Poisoned` after an earlier failure. Later ones go to `on_ack`.
    pub fn upsert(
        &self,
        rows: Vec<NewRow>,
        body: Vec<u8>,
        wait: bool,
        on_ack: OnAck,
    ) -> Result<()> {
        self.submit(Prepared::Upsert { rows, body }, wait, on_ack)
    }

    /// Deletes points.
    ///
    /// # Errors
    /// As [`Shard::upsert`].
    pub fn delete(&self, target: Target, wait: bool, on_ack: OnAck) -> Result<()> {
        let targets = self.targets(target);
        self.submit(Prepared::Delete(targets), wait, on_ack)
    }

    /// Changes the payload of points.
    ///
    /// # Errors
    /// As [`Shard::upsert`]; `Invalid` for paths and for payloads that may not be stored.
    pub fn edit_payload(
        &self,
        target: Target,
        edit: PayloadEdit,
        wait: bool,
        on_ack: OnAck,
    ) -> Result<()> {
        let compiled = edit.compile()?;
        compiled.check()?;
        let targets = self.targets(target);
        self.submit(
            Prepared::EditPayload {
                targets,
                edit,
                compiled,
            },
            wait,
            on_ack,
        )
    }

    /// Replaces vectors of points, which must exist. `rows` hold no id twice; what a row has no vector
    /// for stays as it is.
    ///
    /// # Errors
    /// As [`Shard::upsert`]; `PointNotFound` goes to `on_ack`, and nothing is changed then.
    pub fn update_vectors(&self, rows: Vec<NewRow>, wait: bool, on_ack: OnAck) -> Result<()> {
        self.submit(Prepared::UpdateVectors(rows), wait, on_ack)
    }

    /// Takes vectors away from points; `names` are those of the collection.
    ///
    /// # Errors
    /// As [`Shard::upsert`].
    pub fn delete_vectors(
        &self,
        target: Target,
        names: Vec<String>,
        wait: bool,
        on_ack: OnAck,
    ) -> Result<()> {
        let targets = self.targets(target);
        self.submit(Prepared::DeleteVectors { targets, names }, wait, on_ack)
    }

    /// Indexes a field; `wait` waits for the index of what is stored already, too, which the background
    /// builds.
    ///
    /// # Errors
    /// As [`Shard::upsert`].
    pub fn create_field_index(
        &self,
        record: FieldIndexRecord,
        wait: bool,
        on_ack: OnAck,
    ) -> Result<()> {
        self.submit(Prepared::CreateFieldIndex(record), wait, on_ack)
    }

    /// Drops a field's index.
    ///
    /// # Errors
    /// As [`Shard::upsert`].
    pub fn delete_field_index(&self, field: String, wait: bool, on_ack: OnAck) -> Result<()> {
        self.submit(Prepared::DeleteFieldIndex(field), wait, on_ack)
    }

    fn targets(&self, target: Target) -> Targets {
        match target {
            Target::Ids(mut ids) => {
                ids.sort_unstable();
                ids.dedup();
                Targets::Ids(ids)
            }
            Target::Filter(filter) => {
                Targets::Matched(Box::new(Candidates::find(filter, self.view())))
            }
        }
    }

    fn submit(&self, update: Prepared, wait: bool, on_ack: OnAck) -> Result<()> {
        self.shared.health.check()?;
        let bytes = update.size_bytes();
        self.shared.enter_queue(bytes);
        self.queue
            .send(Command::Update {
                update,
                wait,
                on_ack,
            })
            .map_err(|_| {
                self.shared.leave_queue(bytes);
                EngineError::Stopping
            })
    }

    /// Hands the writer a command and waits for its answer.
    fn ask(&self, command: impl FnOnce(Sender<Result<()>>) -> Command) -> Result<()> {
        let (done, outcome) = bounded(1);
        self.queue
            .send(command(done))
            .map_err(|_| EngineError::Stopping)?;
        outcome.recv().unwrap_or(Err(EngineError::Stopping))
    }

    /// Stops the threads without a checkpoint: the files are about to be removed.
    pub(crate) fn abandon(&self) {
        self.shared.health.close();
        self.stop();
    }

    /// Stops the threads: the queue is worked off, the log synced, a checkpoint taken. Idempotent.
    pub fn stop(&self) {
        let Some(threads) = self.threads.lock().take() else {
            return;
        };
        // The writer is gone already if the channel is closed.
        drop(self.queue.send(Command::Stop));
        join(threads.writer, "writer");
        drop(threads.log_queue.send(LogMessage::Stop));
        join(threads.log, "log");
        threads.checkpoint_stop.set();
        self.shared.checkpoint_bell.ring();
        join(threads.checkpoint, "checkpoint");
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.stop();
    }
}

fn join(thread: JoinHandle<()>, name: &str) {
    if thread.join().is_err() {
        tracing::error!(name, "a thread of the shard had panicked");
    }
}

/// An interval as the threads share it.
fn interval_ms(interval: Duration) -> u64 {
    u64::try_from(interval.as_millis()).unwrap_or(u64::MAX)
}

/// Which points an update is about.
#[derive(Debug)]
pub enum Target {
    /// These ids.
    Ids(Vec<flatwater_segment::PointId>),
    /// All that match when the update is applied.
    Filter(CompiledFilter),
}

/// Channel of commands to the writer. `enter_queue` bounds it; the channel itself must be of the kind that
/// drops what is left in it when the writer ends: who waits for an answer then learns that none comes.
fn command_queue() -> (Sender<Command>, crossbeam_channel::Receiver<Command>) {
    unbounded()
}
