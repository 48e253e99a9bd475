//! What a run does, step by step, in a form that can be written down and read back.
//!
//! A trace is a text file: the setup in the first line, a step in each other one, as JSON. Vectors stand
//! as the seed they are made from.

use std::collections::BTreeMap;

use flatwater_engine::collection::update::{PointInput, PointVectors, Selection, Update};
use flatwater_engine::config::collection::{
    CollectionConfig, FieldSchema, FieldType, HnswDiff, OptimizerConfig, VectorParams,
};
use flatwater_index::Metric;
use flatwater_segment::PointId;
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::datetime::Datetime;
use flatwater_segment::payload::filter::{
    Bounds, Condition, FieldCondition, FieldTest, Filter, MatchValue, NestedCondition, Range,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dice::Dice;

/// Names and dimensions of the vectors: one with codes, one without.
pub(crate) const VECTORS: [(&str, usize); 2] = [("", 64), ("small", 3)];

/// A run that can be replayed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trace {
    pub(crate) setup: Setup,
    pub(crate) steps: Vec<Step>,
}

/// The collection of a run, and where it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// KB; small ones make a run fill several segments.
    pub(crate) segment_kb: usize,
    /// On the file system instead of in memory; a kill or a power loss is a stop there.
    pub(crate) on_files: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// Create the collection, if there is none.
    Create,
    /// Delete the collection, if there is one.
    Drop,
    /// Change the collection.
    Write {
        write: Write,
        /// Whether the acknowledgement waits for the log to be synced.
        wait: bool,
    },
    /// Stop in good order (which takes a checkpoint) and open again.
    Stop,
    /// Kill the process and open again.
    Kill,
    /// Cut the power and open again; what was not synced is kept or lost as the seed has it.
    PowerLoss { seed: u64 },
    /// Compare answers to questions made from the seed.
    Check { seed: u64 },
    /// Change what the optimizers go by.
    Settings(Settings),
    /// Ask every job at work to stop.
    Cancel,
    /// Wait until the optimizers have nothing to do.
    Settle,
}

/// Settings that call for work: merges, vacuums, other graphs, none at all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Segments aimed at.
    pub(crate) segments: usize,
    /// Percent of dead rows past which a segment is vacuumed.
    pub(crate) deleted_percent: u8,
    /// Links of a row; 0 for no graph.
    pub(crate) m: usize,
    /// KB outside a graph from which indexing starts; 0 = off.
    pub(crate) indexing_kb: usize,
    /// KB of the largest segment.
    pub(crate) segment_kb: usize,
}

impl Settings {
    pub(crate) fn apply(self, config: &CollectionConfig) -> CollectionConfig {
        let mut config = config.clone();
        config.hnsw.m = self.m;
        config.optimizers.default_segment_number = self.segments;
        config.optimizers.deleted_threshold = f64::from(self.deleted_percent) / 100.0;
        config.optimizers.vacuum_min_vector_number = 10;
        config.optimizers.indexing_threshold = self.indexing_kb;
        config.optimizers.max_segment_size = Some(self.segment_kb);
        config
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Write {
    Upsert(Vec<Point>),
    Delete(Which),
    SetPayload {
        which: Which,
        payload: Payload,
        key: Option<String>,
    },
    OverwritePayload {
        which: Which,
        payload: Payload,
    },
    DeleteKeys {
        which: Which,
        keys: Vec<String>,
    },
    ClearPayload(Which),
    /// Refused as a whole if one of the points does not exist.
    UpdateVectors(Vec<NewVectors>),
    DeleteVectors {
        which: Which,
        /// For each of [`VECTORS`] whether it goes.
        vectors: [bool; 2],
    },
    CreateIndex {
        field: String,
        kind: IndexKind,
    },
    DropIndex {
        field: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) id: Id,
    /// For each of [`VECTORS`] the seed of its values, or none.
    pub(crate) vectors: [Option<u64>; 2],
    pub(crate) payload: Option<Payload>,
    /// Bytes of text added to the payload.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) pad: usize,
}

/// New vectors of a point: the seed of their values for each of [`VECTORS`] that changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NewVectors {
    pub(crate) id: Id,
    pub(crate) vectors: [Option<u64>; 2],
}

impl NewVectors {
    pub(crate) fn vectors(&self) -> BTreeMap<String, Vec<f32>> {
        vectors(self.vectors)
    }
}

/// Names of the vectors that go.
pub(crate) fn names(goes: [bool; 2]) -> Vec<String> {
    let named = VECTORS.iter().zip(goes);
    named
        .filter(|(_, goes)| *goes)
        .map(|((name, _), _)| (*name).to_owned())
        .collect()
}

fn vectors(seeds: [Option<u64>; 2]) -> BTreeMap<String, Vec<f32>> {
    VECTORS
        .iter()
        .zip(seeds)
        .filter_map(|(&(name, dim), seed)| Some((name.to_owned(), Dice::new(seed?).vector(dim))))
        .collect()
}

fn is_zero(pad: &usize) -> bool {
    *pad == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Id {
    Num(u64),
    Uuid(u64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Which {
    Ids(Vec<Id>),
    Filter(Clauses),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Clauses {
    pub(crate) must: Vec<Test>,
    pub(crate) should: Vec<Test>,
    pub(crate) must_not: Vec<Test>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Test {
    Color(String),
    ColorAnyOf(Vec<String>),
    ColorNoneOf(Vec<String>),
    ColorIsNull,
    SizeFrom(u64),
    SizeIsEmpty,
    /// So many sizes or more.
    SizesFrom(usize),
    /// From the start of this hour on, for six hours.
    HourFrom(u64),
    Flag(bool),
    Key(u64),
    /// A part in which both stand.
    Part {
        a: u64,
        b: u64,
    },
    /// The vector at this place of [`VECTORS`].
    HasVector(usize),
    HasId(Vec<Id>),
}

/// A moment in the hour with this number, in one of its spellings.
pub(crate) fn moment(hour: u64) -> String {
    let (day, hour) = (hour / 24 + 1, hour % 24);
    match hour % 3 {
        0 => format!("2024-02-{day:02}T{hour:02}:30:00.25Z"),
        1 => format!("2024-02-{day:02} {hour:02}:00:00"),
        _ => format!("2024-02-{day:02}T{hour:02}:59:59-00:00"),
    }
}

/// A UUID by its number.
pub(crate) fn uuid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexKind {
    Keyword,
    Integer,
    Float,
    Bool,
    Datetime,
    Uuid,
}

impl Trace {
    pub(crate) fn to_text(&self) -> String {
        let mut text = serde_json::to_string(&self.setup).unwrap();
        for step in &self.steps {
            text.push('\n');
            text.push_str(&serde_json::to_string(step).unwrap());
        }
        text.push('\n');
        text
    }

    pub(crate) fn from_text(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines
            .next()
            .expect("the first line of a trace is its setup");
        Self {
            setup: serde_json::from_str(first).unwrap(),
            steps: lines
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        }
    }
}

impl Setup {
    pub(crate) fn config(self) -> CollectionConfig {
        let vector = |size| VectorParams {
            size,
            distance: Metric::Euclid,
            on_disk: None,
            hnsw: HnswDiff::default(),
        };
        let mut config = CollectionConfig {
            vectors: VECTORS
                .iter()
                .map(|&(name, dim)| (name.to_owned(), vector(dim)))
                .collect(),
            optimizers: OptimizerConfig {
                indexing_threshold: 10,
                max_segment_size: Some(self.segment_kb),
                ..OptimizerConfig::default()
            },
            ..CollectionConfig::default()
        };
        config.wal.wal_capacity_mb = 1;
        config
    }
}

impl Id {
    pub(crate) fn point_id(self) -> PointId {
        match self {
            Self::Num(number) => PointId::Num(number),
            Self::Uuid(number) => PointId::Uuid(u128::from(number) << 64 | 7),
        }
    }
}

fn point_ids(ids: &[Id]) -> Vec<PointId> {
    ids.iter().map(|id| id.point_id()).collect()
}

impl Point {
    pub(crate) fn vectors(&self) -> BTreeMap<String, Vec<f32>> {
        vectors(self.vectors)
    }

    pub(crate) fn payload(&self) -> Option<Payload> {
        if self.pad == 0 {
            return self.payload.clone();
        }
        let mut payload = self.payload.clone().unwrap_or_default();
        payload.insert("pad".to_owned(), Value::from("x".repeat(self.pad)));
        Some(payload)
    }
}

impl Test {
    fn condition(&self) -> Condition {
        let field = |key: &str, test| {
            let key = key.to_owned();
            Condition::Field(FieldCondition { key, test })
        };
        let keywords = |colors: &[String]| {
            colors
                .iter()
                .map(|color| MatchValue::Keyword(color.clone()))
                .collect()
        };
        match self {
            Self::Color(color) => field(
                "color",
                FieldTest::Value(MatchValue::Keyword(color.clone())),
            ),
            Self::ColorAnyOf(colors) => field("color", FieldTest::Any(keywords(colors))),
            Self::ColorNoneOf(colors) => field("color", FieldTest::Except(keywords(colors))),
            Self::ColorIsNull => Condition::IsNull("color".to_owned()),
            Self::SizeFrom(from) => {
                let from = *from as f64;
                let range = Range {
                    gte: Some(from),
                    lt: Some(from + 6.0),
                    ..Range::default()
                };
                field("size", FieldTest::Range(range))
            }
            Self::SizeIsEmpty => Condition::IsEmpty("size".to_owned()),
            Self::SizesFrom(least) => {
                let counts = Bounds {
                    gte: Some(*least),
                    ..Bounds::default()
                };
                field("size", FieldTest::ValuesCount(counts))
            }
            Self::HourFrom(hour) => {
                let start = |hour: u64| {
                    Datetime::parse(&format!("2024-02-{:02} {:02}:00", hour / 24 + 1, hour % 24))
                };
                let range = Bounds {
                    gte: start(*hour),
                    lt: start(*hour + 6),
                    ..Bounds::default()
                };
                field("at", FieldTest::DatetimeRange(range))
            }
            Self::Flag(flag) => field("flag", FieldTest::Value(MatchValue::Bool(*flag))),
            Self::Key(number) => {
                let key = MatchValue::Keyword(uuid(*number));
                field("key", FieldTest::Any(vec![key]))
            }
            Self::Part { a, b } => {
                let is =
                    |key: &str, n: u64| field(key, FieldTest::Value(MatchValue::Integer(n as i64)));
                let filter = Filter {
                    must: vec![is("a", *a), is("b", *b)],
                    ..Filter::default()
                };
                let key = "parts".to_owned();
                Condition::Nested(NestedCondition { key, filter })
            }
            Self::HasVector(place) => Condition::HasVector(VECTORS[*place].0.to_owned()),
            Self::HasId(ids) => Condition::HasId(point_ids(ids)),
        }
    }
}

impl Clauses {
    pub(crate) fn filter(&self) -> Filter {
        let all = |tests: &[Test]| tests.iter().map(Test::condition).collect();
        Filter {
            must: all(&self.must),
            should: all(&self.should),
            must_not: all(&self.must_not),
            min_should: None,
        }
    }
}

impl Which {
    pub(crate) fn selection(&self) -> Selection {
        match self {
            Self::Ids(ids) => Selection::Ids(point_ids(ids)),
            Self::Filter(clauses) => Selection::Filter(clauses.filter()),
        }
    }
}

impl IndexKind {
    pub(crate) fn field_type(self) -> FieldType {
        match self {
            Self::Keyword => FieldType::Keyword,
            Self::Integer => FieldType::Integer,
            Self::Float => FieldType::Float,
            Self::Bool => FieldType::Bool,
            Self::Datetime => FieldType::Datetime,
            Self::Uuid => FieldType::Uuid,
        }
    }
}

impl Write {
    pub(crate) fn update(&self) -> Update {
        match self {
            Self::Upsert(points) => Update::Upsert(
                points
                    .iter()
                    .map(|point| PointInput {
                        id: point.id.point_id(),
                        vectors: point.vectors().into_iter().collect(),
                        payload: point.payload(),
                    })
                    .collect(),
            ),
            Self::Delete(which) => Update::Delete(which.selection()),
            Self::SetPayload {
                which,
                payload,
                key,
            } => Update::SetPayload {
                selection: which.selection(),
                payload: payload.clone(),
                key: key.clone(),
            },
            Self::OverwritePayload { which, payload } => Update::OverwritePayload {
                selection: which.selection(),
                payload: payload.clone(),
            },
            Self::DeleteKeys { which, keys } => Update::DeletePayload {
                selection: which.selection(),
                keys: keys.clone(),
            },
            Self::ClearPayload(which) => Update::ClearPayload(which.selection()),
            Self::UpdateVectors(points) => Update::UpdateVectors(
                points
                    .iter()
                    .map(|point| PointVectors {
                        id: point.id.point_id(),
                        vectors: point.vectors().into_iter().collect(),
                    })
                    .collect(),
            ),
            Self::DeleteVectors { which, vectors } => Update::DeleteVectors {
                selection: which.selection(),
                names: names(*vectors),
            },
            Self::CreateIndex { field, kind } => Update::CreateFieldIndex {
                field: field.clone(),
                schema: FieldSchema {
                    field_type: kind.field_type(),
                    params: None,
                },
            },
            Self::DropIndex { field } => Update::DeleteFieldIndex {
                field: field.clone(),
            },
        }
    }
}
