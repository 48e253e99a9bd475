//! The engine in this process, behind the calls of the REST API that a study makes.
//!
//! Searches run on the engine's search threads, as in the server, so that a load of many clients does
//! not become a load of many threads.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use flatwater_api::convert::{collections, optimizations, patch, payload};
use flatwater_api::error::ApiError;
use flatwater_engine::collection::update::{PointInput, Selection, Update};
use flatwater_engine::config::EngineConfig;
use flatwater_engine::config::collection::CollectionConfig;
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::error::EngineError;
use flatwater_engine::query::request::{
    PayloadSelector, QueryTarget, SearchRequest, VectorSelector,
};
use flatwater_segment::PointId;
use flatwater_segment::payload::filter::Filter;
use serde_json::{Value, json};

use super::{Batch, Failure, Found, Keyword, Search, Session, Subject, Target, Verb};

/// An engine on a folder.
#[derive(Debug)]
pub(crate) struct Embedded {
    engine: Arc<Engine>,
    folder: PathBuf,
    /// Whether the folder goes when this does.
    is_temporary: bool,
    timeout: Duration,
}

impl Embedded {
    /// Opens an engine on `folder`, or on a new temporary one.
    pub(crate) fn open(folder: Option<PathBuf>, timeout: Duration) -> Result<Self, Failure> {
        let is_temporary = folder.is_none();
        let folder = folder.unwrap_or_else(temporary_folder);
        let engine = Engine::open(EngineConfig {
            storage_path: folder.clone(),
            search_threads: 0,
            search_queue_max: 0,
            background_threads: 0,
        })
        .map_err(|error| refused(&error))?;
        Ok(Self {
            engine,
            folder,
            is_temporary,
            timeout,
        })
    }

    fn collection(&self, name: &str) -> Result<Arc<Collection>, Failure> {
        self.engine
            .collection(name)
            .map_err(|error| refused(&error))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // Both are done as well as can be; there is nobody left to tell.
        drop(self.engine.shutdown());
        if self.is_temporary {
            drop(std::fs::remove_dir_all(&self.folder));
        }
    }
}

/// A folder that no other one of this process or another has.
fn temporary_folder() -> PathBuf {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("flatwater-bench-{}-{count}", std::process::id());
    std::env::temp_dir().join(name)
}

impl Target for Embedded {
    fn kind(&self) -> &'static str {
        "embedded"
    }

    fn place(&self) -> String {
        String::from("this process")
    }

    fn version(&self) -> Result<String, Failure> {
        Ok(format!("flatwater {}", env!("CARGO_PKG_VERSION")))
    }

    fn process(&self) -> Option<u32> {
        Some(std::process::id())
    }

    fn manage(&self, verb: Verb, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let bytes = body.map_or(Vec::new(), |body| body.to_string().into_bytes());
        match (verb, parts.as_slice()) {
            (Verb::Put, ["collections", name]) => {
                let defaults = CollectionConfig::default();
                let config = collections::decode_create(&bytes, &defaults).map_err(bad)?;
                let made = self.engine.create_collection(name, config);
                made.map_err(|error| refused(&error))?;
                Ok(json!(true))
            }
            (Verb::Patch, ["collections", name]) => {
                let change = |current: &CollectionConfig| patch::decode_patch(&bytes, current);
                self.collection(name)?.reconfigure(change).map_err(bad)?;
                Ok(json!(true))
            }
            (Verb::Delete, ["collections", name]) => {
                let deleted = self.engine.delete_collection(name);
                Ok(json!(deleted.map_err(|error| refused(&error))?))
            }
            (Verb::Get, ["collections", name]) => {
                parsed(&collections::encode_info(&self.collection(name)?.info()))
            }
            (Verb::Get, ["collections", name, "optimizations"]) => {
                let parts = optimizations::decode_parts("completed,queued,idle_segments", 100);
                let report = self.collection(name)?.optimizations();
                parsed(&optimizations::encode_report(&report, parts.map_err(bad)?))
            }
            (Verb::Put, ["collections", name, "index"]) => {
                let (field, schema) = payload::decode_field_index(&bytes).map_err(bad)?;
                let update = Update::CreateFieldIndex { field, schema };
                let done = self.collection(name)?.update_blocking(update, true);
                done.map_err(|error| refused(&error))?;
                Ok(json!(true))
            }
            _ => Err(Failure::Refused {
                status: String::from("404"),
                message: format!("{verb:?} {path} is not served without a server"),
            }),
        }
    }

    fn session(&self, subject: &Subject) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(EmbeddedSession {
            collection: self.collection(&subject.collection)?,
            engine: Arc::clone(&self.engine),
            vector: subject.vector.clone(),
            timeout: self.timeout,
        }))
    }
}

struct EmbeddedSession {
    engine: Arc<Engine>,
    collection: Arc<Collection>,
    vector: String,
    timeout: Duration,
}

impl Session for EmbeddedSession {
    fn search(&mut self, search: &Search<'_>) -> Result<Found, Failure> {
        let begin = Instant::now();
        let request = SearchRequest {
            target: QueryTarget::Vector(search.vector.to_vec()),
            using: self.vector.clone(),
            filter: search.keyword.map(filter).transpose()?,
            hnsw_ef: search.ef,
            exact: false,
            score_threshold: None,
            limit: search.limit,
            offset: 0,
            with_payload: PayloadSelector::None,
            with_vector: VectorSelector::None,
        };
        let (sender, answer) = channel();
        let collection = Arc::clone(&self.collection);
        let called = Instant::now();
        let job = Box::new(move || {
            let begin = Instant::now();
            let found = collection.search(&request);
            // Nobody waits any more when the limit has passed.
            drop(sender.send((found, begin.elapsed())));
        });
        let spawned = self.engine.spawn_search(job);
        spawned.map_err(|error| refused(&error))?;
        let (found, server) = match answer.recv_timeout(self.timeout) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => return Err(Failure::Timeout(self.timeout)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Connection(String::from("the search panicked")));
            }
        };
        let answered = Instant::now();
        let found = found.map_err(|error| refused(&error))?;
        Ok(Found {
            ids: found.iter().filter_map(|p| number(p.point.id)).collect(),
            server: Some(server),
            own: (called - begin) + answered.elapsed(),
        })
    }

    fn upsert(&mut self, batch: &Batch, wait: bool) -> Result<(), Failure> {
        let point = |(index, &id): (usize, &u64)| PointInput {
            id: PointId::Num(id),
            vectors: vec![(self.vector.clone(), batch.vector(index).to_vec())],
            payload: batch.keywords.get(index).map(|word| {
                [(word.field.clone(), json!(word.value))]
                    .into_iter()
                    .collect()
            }),
        };
        let points = batch.ids.iter().enumerate().map(point).collect();
        self.update(Update::Upsert(points), wait)
    }

    fn delete(&mut self, ids: &[u64], wait: bool) -> Result<(), Failure> {
        let ids = ids.iter().map(|&id| PointId::Num(id)).collect();
        self.update(Update::Delete(Selection::Ids(ids)), wait)
    }
}

impl EmbeddedSession {
    fn update(&self, update: Update, wait: bool) -> Result<(), Failure> {
        let (sender, answer) = channel();
        let on_ack = Box::new(move |result| drop(sender.send(result)));
        let taken = self.collection.update(update, wait, on_ack);
        taken.map_err(|error| refused(&error))?;
        match answer.recv_timeout(self.timeout) {
            Ok(result) => result.map(drop).map_err(|error| refused(&error)),
            Err(RecvTimeoutError::Timeout) => Err(Failure::Timeout(self.timeout)),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::Connection(String::from("the engine stopped")))
            }
        }
    }
}

/// The engine's filter for a keyword, read from the wire's form.
fn filter(keyword: &Keyword) -> Result<Filter, Failure> {
    let wanted = json!({ "key": keyword.field, "match": { "value": keyword.value } });
    let body = json!({ "filter": { "must": [wanted] } }).to_string();
    let read = flatwater_api::convert::points::decode_count(body.as_bytes());
    read.map_err(bad)?
        .ok_or_else(|| Failure::Unreadable(String::from("the filter is empty")))
}

fn number(id: PointId) -> Option<u64> {
    match id {
        PointId::Num(id) => Some(id),
        _ => None,
    }
}

fn parsed(bytes: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(bytes).map_err(|error| Failure::Unreadable(error.to_string()))
}

fn refused(error: &EngineError) -> Failure {
    Failure::Refused {
        status: format!("{:?}", error.kind()),
        message: error.to_string(),
    }
}

fn bad(error: ApiError) -> Failure {
    Failure::Refused {
        status: String::from("400"),
        message: error.to_string(),
    }
}
