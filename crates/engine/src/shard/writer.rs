//! The one writer thread of a shard.
//!
//! 1. Take what waits in the queue, up to a batch.
//! 2. For each update: resolve filters to ids, make room, append to the log, apply.
//! 3. Publish one view for the batch.
//! 4. Acknowledge: `wait` false now; `wait` true when the log thread has synced, and for a field index
//!    when no segment lacks it.
//!
//! It never waits for an fsync, and nobody else publishes a view.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, Sender};
use flatwater_segment::growing::write::NewRow;
use flatwater_segment::{PointId, SeqNo};
use uuid::Uuid;

use super::ShardShared;
use super::apply::Segments;
use super::edit::{CompiledEdit, PayloadEdit};
use super::index::Adoption;
use super::op::{self, FieldIndexRecord, LogOp};
use super::resolve::Candidates;
use super::rewrite::Swap;
use super::sync::LogMessage;
use super::view::ShardView;
use crate::error::{EngineError, Result};
use crate::update::{OnAck, UpdateResult, UpdateStatus};
use crate::wal::Wal;

/// Updates that one view may bring at most: bounds how long the first of a batch waits for it.
const BATCH_MAX: usize = 256;

/// Bytes of updates after which a batch is closed, for the same reason.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// An update on its way to the writer: validated, and encoded as far as it can be.
#[derive(Debug)]
pub(super) enum Prepared {
    /// Points as they will be stored, and the body of their log record.
    Upsert { rows: Vec<NewRow>, body: Vec<u8> },
    /// Delete these points.
    Delete(Targets),
    /// Change the payload of these points.
    EditPayload {
        targets: Targets,
        edit: PayloadEdit,
        compiled: CompiledEdit,
    },
    /// Replace the vectors that are given; the points keep their others and their payload.
    UpdateVectors(Vec<NewRow>),
    /// Take these vectors away.
    DeleteVectors {
        targets: Targets,
        names: Vec<String>,
    },
    /// Index a field.
    CreateFieldIndex(FieldIndexRecord),
    /// Drop a field's index.
    DeleteFieldIndex(String),
}

/// Points that an update is about.
#[derive(Debug)]
pub(super) enum Targets {
    /// Ids, no id twice.
    Ids(Vec<PointId>),
    /// What matched a filter in a view; the writer rechecks what changed since.
    Matched(Box<Candidates>),
}

impl Targets {
    fn size_bytes(&self) -> usize {
        let ids = match self {
            Self::Ids(ids) => ids.len(),
            Self::Matched(candidates) => candidates.len(),
        };
        ids * size_of::<PointId>()
    }
}

impl Prepared {
    /// About how much memory it holds, bytes.
    pub(super) fn size_bytes(&self) -> usize {
        match self {
            Self::Upsert { body, .. } => body.len() * 3,
            Self::Delete(targets) | Self::DeleteVectors { targets, .. } => targets.size_bytes(),
            Self::EditPayload { targets, edit, .. } => targets.size_bytes() + edit.size_bytes(),
            Self::UpdateVectors(rows) => {
                let vectors = rows.iter().flat_map(|row| row.vectors.iter().flatten());
                vectors.map(|vector| vector.original.len() * 12).sum()
            }
            Self::CreateFieldIndex(_) | Self::DeleteFieldIndex(_) => 64,
        }
    }
}

/// What the writer is asked to do.
pub(super) enum Command {
    /// Apply an update.
    Update {
        /// What.
        update: Prepared,
        /// Acknowledge only when synced.
        wait: bool,
        /// Called with the acknowledgement.
        on_ack: OnAck,
    },
    /// Put a segment in the place of those it was made of.
    Swap(Box<Swap>),
    /// Take over an index that was built aside.
    Adopt(Box<Adoption>),
    /// Tell those who wait for the index of a field that it could not be built.
    IndexFailed {
        /// Which.
        field: String,
        /// Why.
        reason: String,
    },
    /// Let a segment take no more rows.
    Close {
        /// Which.
        segment: Uuid,
        /// Told when the next view shows it.
        done: Sender<Result<()>>,
    },
    /// Finish.
    Stop,
}

/// An update that was applied and is not acknowledged yet.
struct Applied {
    seq: SeqNo,
    wait: bool,
    /// The field whose index is waited for.
    index_of: Option<String>,
    on_ack: OnAck,
}

pub(super) struct Writer {
    pub(super) shared: Arc<ShardShared>,
    pub(super) segments: Segments,
    pub(super) wal: Wal,
    pub(super) queue: Receiver<Command>,
    pub(super) log_thread: Sender<LogMessage>,
    /// Who waits for the index of a field; the wish itself was applied.
    pub(super) waiting: BTreeMap<String, Vec<LogMessage>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.writer_is_gone.store(true, Ordering::Release);
        self.shared.queue_has_room.notify_all();
    }
}

impl Writer {
    /// Runs until [`Command::Stop`].
    pub(super) fn run(mut self) {
        self.work();
        for waiting in std::mem::take(&mut self.waiting).into_values().flatten() {
            waiting.refuse(EngineError::Stopping);
        }
    }

    fn work(&mut self) {
        while let Ok(first) = self.queue.recv() {
            let mut applied = Vec::new();
            let mut next = Some(first);
            let mut bytes = 0;
            self.segments.spec = self.shared.spec.load_full();
            let (mut is_stopping, mut swapped) = (false, Vec::new());
            while let Some(command) = next {
                match command {
                    Command::Update {
                        update,
                        wait,
                        on_ack,
                    } => {
                        bytes += self.take(update, wait, on_ack, &mut applied);
                    }
                    Command::Swap(swap) => swapped.extend(self.swap(*swap)),
                    Command::Adopt(adoption) => swapped.extend(self.adopt(*adoption)),
                    Command::IndexFailed { field, reason } => self.give_up_index(&field, &reason),
                    Command::Close { segment, done } => {
                        self.segments.close(segment);
                        swapped.push(done);
                    }
                    Command::Stop => is_stopping = true,
                }
                let is_open = !is_stopping && applied.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX;
                next = if is_open {
                    self.queue.try_recv().ok()
                } else {
                    None
                };
            }
            self.publish_and_acknowledge(applied, swapped);
            if is_stopping {
                return;
            }
        }
    }

    /// Puts a segment in place; whom to tell once a view shows it.
    fn swap(&mut self, swap: Swap) -> Option<Sender<Result<()>>> {
        let Swap {
            inputs,
            places,
            output,
            done,
        } = swap;
        match self.segments.swap(&inputs, &places, output) {
            Ok(()) => {
                for input in &inputs {
                    let retired = Arc::clone(input.segment());
                    self.shared.leftovers.lock().push(retired.id());
                    self.shared.retired.lock().push(retired);
                }
                self.shared.manifest_is_stale.store(true, Ordering::Release);
                Some(done)
            }
            Err(error) => {
                // Who asked may be gone.
                drop(done.send(Err(error)));
                None
            }
        }
    }

    /// Takes over a built index; whom to tell once a view shows it.
    fn adopt(&mut self, adoption: Adoption) -> Option<Sender<Result<()>>> {
        let Adoption {
            segment,
            build,
            done,
        } = adoption;
        match self.segments.adopt(segment, build) {
            Ok(()) => Some(done),
            Err(error) => {
                // Who asked may be gone.
                drop(done.send(Err(error)));
                None
            }
        }
    }

    /// Answers those who wait for an index that could not be built. It stays listed and is tried again.
    fn give_up_index(&mut self, field: &str, reason: &str) {
        for waiting in self.waiting.remove(field).into_iter().flatten() {
            waiting.refuse(EngineError::IndexFailed {
                field: field.to_owned(),
                reason: reason.to_owned(),
            });
        }
    }

    /// Applies one update; a refused one is answered at once. Returns its size.
    fn take(
        &mut self,
        update: Prepared,
        wait: bool,
        on_ack: OnAck,
        applied: &mut Vec<Applied>,
    ) -> usize {
        let bytes = update.size_bytes();
        let index_of = match &update {
            Prepared::CreateFieldIndex(record) if wait => Some(record.field.clone()),
            _ => None,
        };
        let outcome = match self.shared.health.check() {
            Ok(()) => self.apply(update),
            Err(error) => Err(error),
        };
        self.shared.leave_queue(bytes);
        match outcome {
            Ok(seq) => applied.push(Applied {
                seq,
                wait,
                index_of,
                on_ack,
            }),
            Err(error) => on_ack(Err(error)),
        }
        bytes
    }

    /// Logs and applies one update. On an error nothing of it is applied.
    fn apply(&mut self, update: Prepared) -> Result<SeqNo> {
        let seq = self.segments.applied + 1;
        match update {
            Prepared::Upsert { rows, body } => {
                self.segments.reserve_rows(&rows)?;
                self.log(seq, &body)?;
                let outcome = self.segments.apply_rows(seq, &rows);
                self.logged(seq, outcome)
            }
            Prepared::Delete(targets) => {
                let ids = self.resolve(targets)?;
                // A delete lives on the margin that the log keeps: it works on a full disk.
                self.append(seq, &LogOp::Delete(ids.clone()).encode())?;
                self.segments.apply_delete(seq, &ids);
                Ok(seq)
            }
            Prepared::EditPayload {
                targets,
                edit,
                compiled,
            } => {
                let ids = self.resolve(targets)?;
                let changes = self.segments.plan_payload(seq, &ids, &compiled)?;
                self.log(seq, &LogOp::EditPayload { ids, edit }.encode())?;
                self.segments.apply_payload(seq, &changes);
                Ok(seq)
            }
            Prepared::UpdateVectors(rows) => {
                let rows = self.segments.whole_rows(rows)?;
                let body = op::encode_rows(&self.segments.spec.names(), &rows);
                self.segments.reserve_rows(&rows)?;
                self.log(seq, &body)?;
                let outcome = self.segments.apply_rows(seq, &rows);
                self.logged(seq, outcome)
            }
            Prepared::DeleteVectors { targets, names } => {
                let ids = self.resolve(targets)?;
                let record = LogOp::DeleteVectors { ids, names };
                self.append(seq, &record.encode())?;
                if let LogOp::DeleteVectors { ids, names } = record {
                    self.segments.apply_delete_vectors(seq, &ids, &names);
                }
                Ok(seq)
            }
            Prepared::CreateFieldIndex(record) => {
                let op = LogOp::CreateFieldIndex(record.clone());
                self.log(seq, &op.encode())?;
                self.segments.apply_field_index(seq, &record);
                Ok(seq)
            }
            Prepared::DeleteFieldIndex(field) => {
                self.append(seq, &LogOp::DeleteFieldIndex(field.clone()).encode())?;
                self.segments.apply_drop_field_index(seq, &field);
                Ok(seq)
            }
        }
    }

    /// Appends a record whose room was made first.
    fn log(&mut self, seq: SeqNo, body: &[u8]) -> Result<()> {
        self.wal.reserve(body.len())?;
        self.append(seq, body)
    }

    fn append(&mut self, seq: SeqNo, body: &[u8]) -> Result<()> {
        self.wal.append(seq, body)?;
        self.shared
            .unrecorded_bytes
            .fetch_add(body.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// A logged operation that cannot be applied leaves memory behind the log: no further write may
    /// build on it, and a restart replays it.
    fn logged(&self, seq: SeqNo, outcome: Result<()>) -> Result<SeqNo> {
        outcome.map(|()| seq).inspect_err(|error| {
            self.shared
                .health
                .poison(&format!("operation {seq} was logged, not applied: {error}"));
        })
    }

    fn resolve(&mut self, targets: Targets) -> Result<Vec<PointId>> {
        match targets {
            Targets::Ids(ids) => Ok(ids),
            Targets::Matched(candidates) => candidates.recheck(&self.segments.view()),
        }
    }

    fn publish_and_acknowledge(&mut self, applied: Vec<Applied>, swapped: Vec<Sender<Result<()>>>) {
        if applied.is_empty() && swapped.is_empty() {
            return;
        }
        let view: ShardView = self.segments.view();
        self.shared.view.store(Arc::new(view));
        self.shared.background.ring();
        for done in swapped {
            drop(done.send(Ok(())));
        }
        for Applied {
            seq,
            wait,
            index_of,
            on_ack,
        } in applied
        {
            if let Some(field) = index_of {
                let waiting = self.waiting.entry(field).or_default();
                waiting.push(LogMessage::Wait { seq, on_ack });
            } else if wait {
                self.acknowledge_synced(LogMessage::Wait { seq, on_ack });
            } else {
                on_ack(Ok(UpdateResult {
                    seq,
                    status: UpdateStatus::Acknowledged,
                }));
            }
        }
        let segments = &self.segments;
        let complete = self
            .waiting
            .extract_if(.., |field, _| !segments.lacks_index(field));
        for message in complete
            .flat_map(|(_, waiting)| waiting)
            .collect::<Vec<_>>()
        {
            self.acknowledge_synced(message);
        }
        if self.shared.wants_checkpoint() {
            self.shared.checkpoint_bell.ring();
        }
    }

    fn acknowledge_synced(&self, message: LogMessage) {
        if let Err(refused) = self.log_thread.send(message) {
            refused.into_inner().refuse(EngineError::Stopping);
        }
    }
}
