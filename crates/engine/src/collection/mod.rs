//! A collection: what users create, fill and search.
//!
//! 1. `prepare` checks an update and brings it into the form that is stored.
//! 2. `info` tells what a collection is and does, `segments` what it is made of, `counts` what is
//!    watched, `memory` what it takes.
//! 3. `work` tells what its background does, would do, and how long that takes.
//! 4. `files` keeps the configuration on disk; `spec` says what segments are made of under it.

pub mod counts;
pub mod files;
pub mod info;
pub mod memory;
pub mod segments;
pub use crate::update;
mod prepare;
pub(crate) mod spec;
pub mod work;

use std::sync::Arc;

use arc_swap::ArcSwap;
use flatwater_segment::PointId;
use flatwater_segment::dir::Directory;
use flatwater_segment::parts::spec::SegmentSpec;
use flatwater_segment::payload::filter::Filter;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::config::collection::CollectionConfig;
use crate::error::{EngineError, Result};
use crate::optimizer::Target as OptimizerTarget;
use crate::optimizer::costs::Costs;
use crate::optimizer::jobs::Jobs;
use crate::query;
use crate::query::request::{
    PayloadSelector, Record, ScoredPoint, ScrollPage, ScrollRequest, SearchRequest, VectorSelector,
};
use crate::shard::Shard;
use counts::Counts;
use files::CollectionFile;
use info::{CollectionInfo, OptimizationReport};
use memory::MemoryReport;
use prepare::Change;
pub use prepare::PreparedUpdate;
use segments::SegmentReport;
use spec::{flush_interval, segment_spec};
use update::{OnAck, Update, UpdateResult};
use work::{DryRun, JobsReport};

/// An open collection.
#[derive(Debug)]
pub struct Collection {
    /// Name of its folder, and the folder.
    folder: String,
    dir: Arc<dyn Directory>,
    /// What its file says; the lock lets in one change at a time.
    file: Mutex<CollectionFile>,
    config: ArcSwap<CollectionConfig>,
    spec: Arc<SegmentSpec>,
    shard: Arc<Shard>,
    jobs: Arc<Jobs>,
    costs: Arc<Costs>,
}

impl Collection {
    pub(crate) fn new(
        folder: String,
        dir: Arc<dyn Directory>,
        file: CollectionFile,
        spec: Arc<SegmentSpec>,
        shard: Shard,
        costs: Arc<Costs>,
    ) -> Self {
        Self {
            folder,
            dir,
            config: ArcSwap::from_pointee(file.config.clone()),
            file: Mutex::new(file),
            spec,
            shard: Arc::new(shard),
            jobs: Arc::default(),
            costs,
        }
    }

    /// Settings of this moment.
    #[must_use]
    pub fn config(&self) -> Arc<CollectionConfig> {
        self.config.load_full()
    }

    /// Replaces the settings by what `change` makes of them, durably. Nothing is stopped and no work is
    /// lost: thresholds count from the next look at the plan, settings of segments and graphs for
    /// segments that are begun later. Vectors keep their names, sizes and metrics.
    ///
    /// # Errors
    /// What `change` returns; `Io`, `DiskFull`: the settings are as they were.
    ///
    /// Blocks: for a small file.
    pub fn reconfigure<E: From<EngineError>>(
        &self,
        change: impl FnOnce(&CollectionConfig) -> std::result::Result<CollectionConfig, E>,
    ) -> std::result::Result<(), E> {
        let mut file = self.file.lock();
        let config = change(&file.config)?;
        if config == file.config {
            return Ok(());
        }
        let changed = CollectionFile {
            config,
            ..file.clone()
        };
        changed.write(self.dir.as_ref()).map_err(E::from)?;
        let spec = segment_spec(&changed.config, changed.rotation_seed);
        self.shard
            .reconfigure(spec, flush_interval(&changed.config));
        self.config.store(Arc::new(changed.config.clone()));
        *file = changed;
        Ok(())
    }

    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    pub(crate) fn shard(&self) -> &Shard {
        &self.shard
    }

    /// What the background works on.
    pub(crate) fn optimizer_target(&self) -> OptimizerTarget {
        let config = self.config.load();
        OptimizerTarget {
            shard: Arc::clone(&self.shard),
            jobs: Arc::clone(&self.jobs),
            config: config.optimizers,
            threads_max: config.hnsw.max_indexing_threads,
        }
    }

    /// Asks a job of the background to stop; whether there is such a job. Its result is never published;
    /// it ends within some tens of milliseconds of its own processor time.
    pub fn cancel_job(&self, id: Uuid) -> bool {
        self.jobs.cancel(id)
    }

    /// Validates now (an `Err` here means that nothing was accepted), hands the update to the writer
    /// and returns. `on_ack` runs once, when the update is visible (`wait` false) or visible and
    /// synced (`wait` true).
    ///
    /// # Errors
    /// `Invalid` with field, value and limit; `Poisoned`, `Stopping`.
    ///
    /// Blocks while too much waits for the writer, and while a filter is matched.
    pub fn update(&self, update: Update, wait: bool, on_ack: OnAck) -> Result<()> {
        self.submit(self.prepare(update)?, wait, on_ack)
    }

    /// The first half of [`Collection::update`]: validates, and accepts nothing. So several updates can
    /// be validated before the first one is accepted.
    ///
    /// # Errors
    /// `Invalid` with field, value and limit.
    pub fn prepare(&self, update: Update) -> Result<PreparedUpdate> {
        prepare::update(&self.spec, update)
    }

    /// The second half: hands an update of this collection to the writer.
    ///
    /// # Errors
    /// `Poisoned`, `Stopping`.
    ///
    /// Blocks while too much waits for the writer, and while a filter is matched.
    pub fn submit(&self, update: PreparedUpdate, wait: bool, on_ack: OnAck) -> Result<()> {
        match update.0 {
            Change::Upsert { rows, body } => self.shard.upsert(rows, body, wait, on_ack),
            Change::Delete(target) => self.shard.delete(target, wait, on_ack),
            Change::EditPayload { target, edit } => {
                self.shard.edit_payload(target, edit, wait, on_ack)
            }
            Change::UpdateVectors(rows) => self.shard.update_vectors(rows, wait, on_ack),
            Change::DeleteVectors { target, names } => {
                self.shard.delete_vectors(target, names, wait, on_ack)
            }
            Change::CreateFieldIndex(record) => self.shard.create_field_index(record, wait, on_ack),
            Change::DeleteFieldIndex(field) => self.shard.delete_field_index(field, wait, on_ack),
        }
    }

    /// [`Collection::update`], waiting for the acknowledgement.
    ///
    /// # Errors
    /// Those of [`Collection::update`], and what stopped the update later.
    pub fn update_blocking(&self, update: Update, wait: bool) -> Result<UpdateResult> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        // A caller that is gone needs no answer.
        self.update(
            update,
            wait,
            Box::new(move |result| drop(sender.send(result))),
        )?;
        receiver.recv().unwrap_or(Err(EngineError::Stopping))
    }

    /// Facts of this moment. Lock-free but for a short look at the job list; O(deleted points).
    #[must_use]
    pub fn info(&self) -> CollectionInfo {
        info::collect(self)
    }

    /// The numbers of this moment that are watched. Lock-free; O(deleted points).
    #[must_use]
    pub fn counts(&self) -> Counts {
        counts::collect(self)
    }

    /// What the collection takes of the disk and of memory now. Holds no lock.
    ///
    /// # Errors
    /// `Io` where the files of a segment cannot be listed.
    ///
    /// Cost: a byte for each page of its files.
    pub fn memory(&self) -> Result<MemoryReport> {
        memory::collect(self)
    }

    /// The segments of this moment, oldest first.
    ///
    /// # Errors
    /// `Io` where the files of one cannot be listed.
    pub fn segments(&self) -> Result<Vec<SegmentReport>> {
        segments::list(self)
    }

    /// Background work of this collection.
    #[must_use]
    pub fn optimizations(&self) -> OptimizationReport {
        info::optimizations(self)
    }

    /// Background work of this collection, with how long it took and will take.
    #[must_use]
    pub fn jobs(&self) -> JobsReport {
        work::jobs(self)
    }

    /// What the optimizers would do under other settings, to the end; nothing is changed.
    ///
    /// Cost: a look at the place of each point's payload.
    #[must_use]
    pub fn dry_run(&self, config: &CollectionConfig) -> DryRun {
        work::dry_run(self, config)
    }

    /// Nearest points, best first, ties by id.
    ///
    /// # Errors
    /// `Invalid` (dimensions, names, filter), `PointNotFound`, `Corrupt`.
    pub fn search(&self, request: &SearchRequest) -> Result<Vec<ScoredPoint>> {
        query::search::search(&self.shard.view(), &self.spec, &self.config.load(), request)
    }

    /// Points by id in the order asked for, those that exist.
    ///
    /// # Errors
    /// `Invalid` for paths, `Corrupt`.
    pub fn retrieve(
        &self,
        ids: &[PointId],
        with_payload: &PayloadSelector,
        with_vector: &VectorSelector,
    ) -> Result<Vec<Record>> {
        query::scroll::retrieve(&self.shard.view(), ids, with_payload, with_vector)
    }

    /// A page of points in the order of ids, or of a field's values.
    ///
    /// # Errors
    /// `Invalid` for filters and paths, `Corrupt`.
    pub fn scroll(&self, request: &ScrollRequest) -> Result<ScrollPage> {
        query::scroll::scroll(&self.shard.view(), request)
    }

    /// How many points match, exactly.
    ///
    /// # Errors
    /// `Invalid` for filters.
    pub fn count(&self, filter: Option<&Filter>) -> Result<u64> {
        query::scroll::count(&self.shard.view(), filter)
    }
}
