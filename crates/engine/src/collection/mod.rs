//! A collection: what users create, fill and search.
//!
//! 1. `prepare` checks an update and brings it into the form that is stored.
//! 2. `info` tells what a collection is and does.
//! 3. `files` keeps the configuration on disk.

pub mod files;
pub mod info;
pub use crate::update;
mod prepare;

use std::sync::Arc;

use flatwater_segment::PointId;
use flatwater_segment::parts::spec::SegmentSpec;
use flatwater_segment::payload::edit;
use flatwater_segment::payload::filter::Filter;

use crate::config::collection::CollectionConfig;
use crate::error::{EngineError, Result};
use crate::optimizer::indexing::{IndexingJobs, IndexingTarget};
use crate::query;
use crate::query::request::{
    PayloadSelector, Record, ScoredPoint, ScrollPage, ScrollRequest, SearchRequest, VectorSelector,
};
use crate::shard::{Shard, Target, compile};
use info::{CollectionInfo, OptimizationReport};
use update::{OnAck, Selection, Update, UpdateResult};

/// An open collection.
#[derive(Debug)]
pub struct Collection {
    /// Name of its folder.
    folder: String,
    config: CollectionConfig,
    spec: Arc<SegmentSpec>,
    shard: Arc<Shard>,
    jobs: Arc<IndexingJobs>,
}

impl Collection {
    pub(crate) fn new(
        folder: String,
        config: CollectionConfig,
        spec: Arc<SegmentSpec>,
        shard: Shard,
    ) -> Self {
        Self {
            folder,
            config,
            spec,
            shard: Arc::new(shard),
            jobs: Arc::default(),
        }
    }

    /// Settings.
    #[must_use]
    pub fn config(&self) -> &CollectionConfig {
        &self.config
    }

    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    pub(crate) fn shard(&self) -> &Shard {
        &self.shard
    }

    /// What the background works on.
    pub(crate) fn indexing_target(&self) -> IndexingTarget {
        IndexingTarget {
            shard: Arc::clone(&self.shard),
            jobs: Arc::clone(&self.jobs),
            config: self.config.optimizers,
        }
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
                let key = match key {
                    Some(text) => {
                        let path = crate::shard::parse_path(&text)?;
                        Some((text, path))
                    }
                    None => None,
                };
                edit::check_set(&payload, key.as_ref().map(|(_, path)| path))
                    .map_err(|error| EngineError::Invalid(error.to_string()))?;
                self.shard
                    .set_payload(target(selection)?, payload, key, wait, on_ack)
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
        query::search::search(&self.shard.view(), &self.spec, &self.config, request)
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

    /// A page of points in the order of ids.
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
