//! A collection: what users create, fill and search.
//!
//! 1. `prepare` checks an update and brings it into the form that is stored.
//! 2. `info` tells what a collection is and does.
//! 3. `files` keeps the configuration on disk; `spec` says what segments are made of under it.

pub mod files;
pub mod info;
pub use crate::update;
mod prepare;
pub(crate) mod spec;

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
use crate::optimizer::jobs::Jobs;
use crate::query;
use crate::query::request::{
    PayloadSelector, Record, ScoredPoint, ScrollPage, ScrollRequest, SearchRequest, VectorSelector,
};
use crate::shard::op::PayloadEdit;
use crate::shard::{Shard, Target, compile};
use crate::vectors::vector_place;
use files::CollectionFile;
use info::{CollectionInfo, OptimizationReport};
use spec::{flush_interval, segment_spec};
use update::{OnAck, Selection, Update, UpdateResult};

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
}

impl Collection {
    pub(crate) fn new(
        folder: String,
        dir: Arc<dyn Directory>,
        file: CollectionFile,
        spec: Arc<SegmentSpec>,
        shard: Shard,
    ) -> Self {
        Self {
            folder,
            dir,
            config: ArcSwap::from_pointee(file.config.clone()),
            file: Mutex::new(file),
            spec,
            shard: Arc::new(shard),
            jobs: Arc::default(),
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
            spec: self.wanted_spec(),
            threads_max: config.hnsw.max_indexing_threads,
        }
    }

    /// What segments are made of under the settings of this moment.
    pub(crate) fn wanted_spec(&self) -> Arc<SegmentSpec> {
        self.shard.spec()
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
        match update {
            Update::Upsert(points) => {
                let (rows, body) = prepare::rows(&self.spec, points)?;
                self.shard.upsert(rows, body, wait, on_ack)
            }
            Update::Delete(selection) => self.shard.delete(target(selection)?, wait, on_ack),
            Update::SetPayload {
                selection,
                payload,
                key,
            } => {
                let payload_json = prepare::payload_json(&payload)?;
                let edit = PayloadEdit::Set { payload_json, key };
                self.edit_payload(selection, edit, wait, on_ack)
            }
            Update::OverwritePayload { selection, payload } => {
                let payload_json = prepare::payload_json(&payload)?;
                let edit = PayloadEdit::Overwrite { payload_json };
                self.edit_payload(selection, edit, wait, on_ack)
            }
            Update::DeletePayload { selection, keys } => {
                self.edit_payload(selection, PayloadEdit::DeleteKeys(keys), wait, on_ack)
            }
            Update::ClearPayload(selection) => {
                self.edit_payload(selection, PayloadEdit::Clear, wait, on_ack)
            }
            Update::UpdateVectors(points) => {
                let rows = prepare::partial_rows(&self.spec, points)?;
                self.shard.update_vectors(rows, wait, on_ack)
            }
            Update::DeleteVectors { selection, names } => {
                for name in &names {
                    vector_place(&self.spec, name)?;
                }
                let target = target(selection)?;
                self.shard.delete_vectors(target, names, wait, on_ack)
            }
            Update::CreateFieldIndex { field, schema } => {
                crate::shard::parse_path(&field)?;
                let record = crate::shard::schema::to_record(&field, &schema);
                self.shard.create_field_index(record, wait, on_ack)
            }
            Update::DeleteFieldIndex { field } => {
                self.shard.delete_field_index(field, wait, on_ack)
            }
        }
    }

    fn edit_payload(
        &self,
        selection: Selection,
        edit: PayloadEdit,
        wait: bool,
        on_ack: OnAck,
    ) -> Result<()> {
        self.shard
            .edit_payload(target(selection)?, edit, wait, on_ack)
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

    /// Background work of this collection.
    #[must_use]
    pub fn optimizations(&self) -> OptimizationReport {
        info::optimizations(self)
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

fn target(selection: Selection) -> Result<Target> {
    Ok(match selection {
        Selection::Ids(ids) => Target::Ids(ids),
        Selection::Filter(filter) => Target::Filter(compile(&filter)?),
    })
}
