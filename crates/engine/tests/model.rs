//! A model beside the engine: plain maps and exact search, driven with the same random operations.
//!
//! Every seed is printed with its failure. `MODEL_SEEDS=n` runs more seeds, `MODEL_SEED=s` replays
//! one.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use flatwater_engine::collection::update::{PointInput, Selection, Update};
use flatwater_engine::config::EngineConfig;
use flatwater_engine::config::collection::{
    CollectionConfig, FieldSchema, FieldType, HnswDiff, OptimizerConfig, VectorParams,
};
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::query::request::{
    PayloadSelector, QueryTarget, ScrollRequest, SearchRequest, VectorSelector,
};
use flatwater_index::Metric;
use flatwater_segment::PointId;
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::eval::CompiledFilter;
use flatwater_segment::payload::filter::{
    Condition, FieldCondition, FieldTest, Filter, MatchValue, Range,
};
use serde_json::{Value, json};

const DIM: usize = 64;
const OPERATIONS: usize = 220;
const SEEDS_DEFAULT: u64 = 6;

/// Small deterministic generator (splitmix64): a failure replays from its seed alone.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    fn unit(&mut self) -> f32 {
        self.roll(1 << 20) as f32 / (1 << 19) as f32 - 1.0
    }

    fn vector(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.unit()).collect()
    }

    fn id(&mut self) -> PointId {
        match self.roll(8) {
            0 => PointId::Uuid(u128::from(self.roll(40)) << 64 | 7),
            _ => PointId::Num(self.roll(400)),
        }
    }

    fn ids(&mut self) -> Vec<PointId> {
        (0..=self.roll(12)).map(|_| self.id()).collect()
    }

    fn payload(&mut self) -> Payload {
        let mut payload = Payload::new();
        if self.roll(4) > 0 {
            payload.insert("color".into(), self.color());
        }
        if self.roll(4) > 0 {
            payload.insert("size".into(), json!(self.roll(20)));
        }
        if self.roll(6) == 0 {
            payload.insert("color".into(), json!([self.color(), Value::Null]));
        }
        payload
    }

    fn color(&mut self) -> Value {
        json!(["red", "green", "blue", "grey"][self.roll(4) as usize])
    }

    fn condition(&mut self) -> Condition {
        let field = |key: &str, test| {
            Condition::Field(FieldCondition {
                key: key.to_owned(),
                test,
            })
        };
        let keyword = |value: &Value| MatchValue::Keyword(value.as_str().unwrap_or("").to_owned());
        match self.roll(7) {
            0 => field("color", FieldTest::Value(keyword(&self.color()))),
            1 => field(
                "color",
                FieldTest::Any(vec![keyword(&self.color()), keyword(&self.color())]),
            ),
            2 => field("color", FieldTest::Except(vec![keyword(&self.color())])),
            3 => {
                let from = self.roll(20) as f64;
                field(
                    "size",
                    FieldTest::Range(Range {
                        gte: Some(from),
                        lt: Some(from + 6.0),
                        ..Range::default()
                    }),
                )
            }
            4 => Condition::HasId(self.ids()),
            5 => Condition::IsEmpty("size".to_owned()),
            _ => Condition::IsNull("color".to_owned()),
        }
    }

    fn filter(&mut self) -> Filter {
        let mut filter = Filter::default();
        for _ in 0..=self.roll(3) {
            let condition = self.condition();
            match self.roll(3) {
                0 => filter.must.push(condition),
                1 => filter.should.push(condition),
                _ => filter.must_not.push(condition),
            }
        }
        filter
    }
}

/// What the engine should hold.
#[derive(Default)]
struct Model {
    points: BTreeMap<PointId, (BTreeMap<String, Vec<f32>>, Payload)>,
}

impl Model {
    fn matching(&self, filter: &Filter) -> BTreeSet<PointId> {
        let compiled = CompiledFilter::new(filter).unwrap();
        let passes =
            |(id, (_, payload)): &(&PointId, &(_, Payload))| compiled.matches(**id, payload);
        self.points
            .iter()
            .filter(passes)
            .map(|(id, _)| *id)
            .collect()
    }

    fn chosen(&self, selection: &Selection) -> BTreeSet<PointId> {
        match selection {
            Selection::Ids(ids) => ids
                .iter()
                .copied()
                .filter(|id| self.points.contains_key(id))
                .collect(),
            Selection::Filter(filter) => self.matching(filter),
        }
    }

    fn apply(&mut self, update: &Update) {
        match update {
            Update::Upsert(points) => {
                for point in points {
                    let vectors = point.vectors.iter().cloned().collect();
                    let payload = point.payload.clone().unwrap_or_default();
                    self.points.insert(point.id, (vectors, payload));
                }
            }
            Update::Delete(selection) => {
                for id in self.chosen(selection) {
                    self.points.remove(&id);
                }
            }
            Update::SetPayload {
                selection, payload, ..
            } => {
                for id in self.chosen(selection) {
                    let point = self.points.get_mut(&id).unwrap();
                    point.1.extend(payload.clone());
                }
            }
            Update::CreateFieldIndex { .. } | Update::DeleteFieldIndex { .. } => {}
        }
    }

    /// The exact answer of a search, best first, ties by id.
    fn search(&self, name: &str, query: &[f32], filter: &Filter, k: usize) -> Vec<(PointId, f32)> {
        let matching = self.matching(filter);
        let mut scored: Vec<(PointId, f32)> = self
            .points
            .iter()
            .filter(|(id, (vectors, _))| matching.contains(id) && vectors.contains_key(name))
            .map(|(id, (vectors, _))| (*id, distance(&vectors[name], query)))
            .collect();
        scored.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        scored.truncate(k);
        scored
    }
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    let squared: f64 = a
        .iter()
        .zip(b)
        .map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2))
        .sum();
    squared.sqrt() as f32
}

fn open(path: &Path) -> Arc<Engine> {
    Engine::open(EngineConfig {
        storage_path: path.to_owned(),
        search_threads: 1,
        search_queue_max: 0,
        background_threads: 2,
    })
    .unwrap()
}

fn config(dice: &mut Dice) -> CollectionConfig {
    let vector = |size| VectorParams {
        size,
        distance: Metric::Euclid,
        on_disk: None,
        hnsw: HnswDiff::default(),
    };
    CollectionConfig {
        vectors: BTreeMap::from([
            (String::new(), vector(DIM)),
            ("small".to_owned(), vector(3)),
        ]),
        optimizers: OptimizerConfig {
            indexing_threshold: 10,
            // Small enough that a run fills several segments.
            max_segment_size: Some([60, 100, 100_000][dice.roll(3) as usize]),
            ..OptimizerConfig::default()
        },
        ..CollectionConfig::default()
    }
}

fn update(dice: &mut Dice) -> Update {
    let selection = |dice: &mut Dice| match dice.roll(2) {
        0 => Selection::Ids(dice.ids()),
        _ => Selection::Filter(dice.filter()),
    };
    let field = |dice: &mut Dice| match dice.roll(2) {
        0 => ("color".to_owned(), FieldType::Keyword),
        _ => ("size".to_owned(), FieldType::Integer),
    };
    match dice.roll(20) {
        0..=10 => {
            let points = (0..=dice.roll(30))
                .map(|_| PointInput {
                    id: dice.id(),
                    vectors: match dice.roll(5) {
                        0 => vec![(String::new(), dice.vector(DIM))],
                        1 => vec![("small".to_owned(), dice.vector(3))],
                        _ => vec![
                            (String::new(), dice.vector(DIM)),
                            ("small".to_owned(), dice.vector(3)),
                        ],
                    },
                    payload: (dice.roll(5) > 0).then(|| dice.payload()),
                })
                .collect();
            Update::Upsert(points)
        }
        11..=13 => Update::Delete(selection(dice)),
        14..=17 => {
            let payload = dice.payload();
            Update::SetPayload {
                selection: selection(dice),
                payload,
                key: None,
            }
        }
        18 => {
            let (field, field_type) = field(dice);
            Update::CreateFieldIndex {
                field,
                schema: FieldSchema {
                    field_type,
                    params: None,
                },
            }
        }
        _ => Update::DeleteFieldIndex {
            field: field(dice).0,
        },
    }
}

fn check(collection: &Collection, model: &Model, dice: &mut Dice, context: &str) {
    assert_eq!(
        collection.count(None).unwrap(),
        model.points.len() as u64,
        "count, {context}"
    );
    assert_eq!(
        collection.info().points_count,
        model.points.len() as u64,
        "info, {context}"
    );
    let filter = dice.filter();
    let matching = model.matching(&filter);
    let counted = collection.count(Some(&filter)).unwrap();
    assert_eq!(
        counted,
        matching.len() as u64,
        "count of {filter:?}, {context}"
    );
    let limit = 1 + dice.roll(50) as usize;
    let page = collection
        .scroll(&ScrollRequest {
            filter: Some(filter.clone()),
            limit,
            offset: None,
            with_payload: PayloadSelector::All,
            with_vector: VectorSelector::All,
        })
        .unwrap();
    let expected: Vec<PointId> = matching.iter().copied().take(limit).collect();
    let found: Vec<PointId> = page.points.iter().map(|record| record.id).collect();
    assert_eq!(found, expected, "scroll of {filter:?}, {context}");
    assert_eq!(
        page.next_offset,
        matching.iter().copied().nth(limit),
        "next page, {context}"
    );
    for record in &page.points {
        let (vectors, payload) = &model.points[&record.id];
        assert_eq!(
            record.payload.as_ref(),
            Some(payload),
            "payload of {}, {context}",
            record.id
        );
        let stored: BTreeMap<String, Vec<f32>> =
            record.vectors.clone().unwrap().into_iter().collect();
        assert_eq!(&stored, vectors, "vectors of {}, {context}", record.id);
    }
    check_search(collection, model, dice, &filter, context);
}

fn check_search(
    collection: &Collection,
    model: &Model,
    dice: &mut Dice,
    filter: &Filter,
    context: &str,
) {
    let (name, dim) = if dice.roll(2) == 0 {
        ("", DIM)
    } else {
        ("small", 3)
    };
    let query = dice.vector(dim);
    let limit = 1 + dice.roll(20) as usize;
    let truth = model.search(name, &query, filter, limit);
    for exact in [true, false] {
        let found = collection
            .search(&SearchRequest {
                target: QueryTarget::Vector(query.clone()),
                using: name.to_owned(),
                filter: Some(filter.clone()),
                hnsw_ef: None,
                exact,
                score_threshold: None,
                limit,
                offset: 0,
                with_payload: PayloadSelector::None,
                with_vector: VectorSelector::None,
            })
            .unwrap();
        assert_eq!(
            found.len(),
            truth.len(),
            "{filter:?}, exact {exact}, {context}"
        );
        let ids: BTreeSet<PointId> = found.iter().map(|scored| scored.point.id).collect();
        assert_eq!(ids.len(), found.len(), "a point came twice, {context}");
        for scored in &found {
            let (vectors, _) = &model.points[&scored.point.id];
            let score = distance(&vectors[name], &query);
            assert!(
                (scored.score - score).abs() < 1e-4 * (1.0 + score),
                "score, {context}"
            );
        }
        if exact {
            for (scored, (_, score)) in found.iter().zip(&truth) {
                assert!(
                    (scored.score - score).abs() < 1e-4 * (1.0 + score),
                    "rank, {context}"
                );
            }
        }
    }
}

/// A copy of a storage folder, file by file.
fn copy_of(path: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &target);
            } else {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    copy(path, folder.path());
    folder
}

fn run(seed: u64) {
    let mut folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(seed);
    let mut model = Model::default();
    let mut engine = open(folder.path());
    engine.create_collection("c", config(&mut dice)).unwrap();
    let mut collection = engine.collection("c").unwrap();
    for step in 0..OPERATIONS {
        let context = format!("seed {seed}, step {step}; replay with MODEL_SEED={seed}");
        if dice.roll(40) == 0 {
            // A stop takes a checkpoint. The files as they stand while the engine runs are what a
            // killed process would leave.
            let killed = (dice.roll(2) == 0).then(|| copy_of(folder.path()));
            drop(collection);
            engine.shutdown().unwrap();
            drop(engine);
            folder = killed.unwrap_or(folder);
            engine = open(folder.path());
            collection = engine.collection("c").unwrap();
        }
        let update = update(&mut dice);
        collection
            .update_blocking(update.clone(), dice.roll(10) == 0)
            .unwrap();
        model.apply(&update);
        if dice.roll(3) == 0 {
            check(&collection, &model, &mut dice, &context);
        }
    }
    check(
        &collection,
        &model,
        &mut dice,
        &format!("seed {seed}, at the end"),
    );
}

#[test]
fn the_engine_and_the_model_agree_after_every_operation() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    if let Some(seed) = number("MODEL_SEED") {
        return run(seed);
    }
    for seed in 0..number("MODEL_SEEDS").unwrap_or(SEEDS_DEFAULT) {
        run(seed);
    }
}
