//! The engine: opens a storage folder, holds its collections, shuts down.
//! (Signatures for callers; the bodies arrive with the shard.)

use std::sync::Arc;

use crate::collection::info::{CollectionInfo, OptimizationReport};
use crate::collection::update::{Update, UpdateResult};
use crate::config::EngineConfig;
use crate::config::collection::CollectionConfig;
use crate::error::Result;
use crate::query::request::{
    PayloadSelector, Record, ScoredPoint, ScrollPage, ScrollRequest, SearchRequest, VectorSelector,
};
use flatwater_segment::PointId;
use flatwater_segment::payload::filter::Filter;

/// An open storage folder. Cheap to share behind an `Arc`. Every call but `update` and
/// `spawn_search` may block: files or fsync; call them from a blocking thread.
#[derive(Debug)]
pub struct Engine {}

impl Engine {
    /// Opens `config.storage_path`, recovering every collection.
    pub fn open(_config: EngineConfig) -> Result<Arc<Self>> {
        todo!()
    }
    /// Names of all collections, sorted.
    pub fn collections(&self) -> Vec<String> {
        todo!()
    }
    /// Creates a collection; `CollectionExists`, `Invalid` (name, limits).
    pub fn create_collection(&self, _name: &str, _config: CollectionConfig) -> Result<()> {
        todo!()
    }
    /// Deletes a collection; false if there was none.
    pub fn delete_collection(&self, _name: &str) -> Result<bool> {
        todo!()
    }
    /// A collection by name (lock-free, quick).
    pub fn collection(&self, _name: &str) -> Result<Arc<Collection>> {
        todo!()
    }
    /// Runs `job` on a search thread; `Refused` when the queue is full. Does not block.
    pub fn spawn_search(&self, _job: Box<dyn FnOnce() + Send>) -> Result<()> {
        todo!()
    }
    /// Stops background work, takes a checkpoint of every shard, closes. Idempotent; seconds.
    pub fn shutdown(&self) -> Result<()> {
        todo!()
    }
}

/// A collection.
#[derive(Debug)]
pub struct Collection {}

/// Called once, from an engine thread, with the acknowledgement. Must be quick and must not panic.
pub type OnAck = Box<dyn FnOnce(Result<UpdateResult>) + Send>;

impl Collection {
    /// Validates now (an `Err` here means nothing was accepted), then hands the update to the
    /// writer and returns; `on_ack` runs when it is visible (`wait` false) or visible and synced
    /// (`wait` true). May block shortly when the queue is full.
    pub fn update(&self, _update: Update, _wait: bool, _on_ack: OnAck) -> Result<()> {
        todo!()
    }
    /// [`Self::update`], waiting for the acknowledgement.
    pub fn update_blocking(&self, _update: Update, _wait: bool) -> Result<UpdateResult> {
        todo!()
    }
    /// Facts of this moment.
    pub fn info(&self) -> CollectionInfo {
        todo!()
    }
    /// Background work.
    pub fn optimizations(&self) -> OptimizationReport {
        todo!()
    }
    /// Nearest points, best first.
    pub fn search(&self, _request: &SearchRequest) -> Result<Vec<ScoredPoint>> {
        todo!()
    }
    /// Points by id in the order asked for, those that exist.
    pub fn retrieve(
        &self,
        _ids: &[PointId],
        _p: &PayloadSelector,
        _v: &VectorSelector,
    ) -> Result<Vec<Record>> {
        todo!()
    }
    /// A page of points in the order of ids.
    pub fn scroll(&self, _request: &ScrollRequest) -> Result<ScrollPage> {
        todo!()
    }
    /// How many points match, exactly.
    pub fn count(&self, _filter: Option<&Filter>) -> Result<u64> {
        todo!()
    }
}
