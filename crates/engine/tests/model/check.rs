//! Comparing the engine with the plain maps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::query::request::{
    Direction, Order, OrderBy, PayloadSelector, QueryTarget, ScrollRequest, SearchRequest,
    VectorSelector,
};
use flatwater_segment::PointId;
use flatwater_segment::payload::filter::Filter;

use crate::dice::Dice;
use crate::plain::{Plain, Stored, World, distance};
use crate::step::VECTORS;

/// What is wrong, in words; the run adds where.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The name of the collection of every run.
pub(crate) const NAME: &str = "c";

/// Fails with a text unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+));
        }
    };
}
pub(crate) use ensure;

/// Turns an error of the engine into a text.
pub(crate) fn told<T>(what: &str, result: flatwater_engine::error::Result<T>) -> Outcome<T> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// Everything that the engine shows.
pub(crate) fn contents(engine: &Engine) -> Outcome<World> {
    if engine.collections().is_empty() {
        return Ok(None);
    }
    let collection = told("opening the collection", engine.collection(NAME))?;
    let request = ScrollRequest {
        filter: None,
        limit: 1_000_000,
        offset: None,
        order_by: None,
        with_payload: PayloadSelector::All,
        with_vector: VectorSelector::All,
    };
    let page = told("scrolling all", collection.scroll(&request))?;
    let mut plain = Plain::default();
    for record in page.points {
        let stored = Stored {
            vectors: record.vectors.unwrap_or_default().into_iter().collect(),
            payload: record.payload.unwrap_or_default(),
        };
        let twice = plain.points.insert(record.id, Arc::new(stored)).is_some();
        ensure!(!twice, "point {} is shown twice", record.id);
    }
    let info = collection.info();
    for (field, (schema, _)) in info.payload_schema {
        plain.indexes.insert(field, schema.field_type);
    }
    let (counted, shown) = (info.points_count, plain.points.len() as u64);
    ensure!(counted == shown, "{counted} points counted, {shown} shown");
    Ok(Some(plain))
}

/// How two worlds differ, for a message.
pub(crate) fn difference(found: &World, expected: &World) -> String {
    let (found, expected) = match (found, expected) {
        (Some(found), Some(expected)) => (found, expected),
        (found, expected) => {
            let is_there = |world: &World| if world.is_some() { "a" } else { "no" };
            return format!(
                "{} collection instead of {}",
                is_there(found),
                is_there(expected)
            );
        }
    };
    let ids: BTreeSet<PointId> = found
        .points
        .keys()
        .chain(expected.points.keys())
        .copied()
        .collect();
    let mut differing = Vec::new();
    for id in ids {
        let what = match (found.points.get(&id), expected.points.get(&id)) {
            (Some(_), None) => "should not be there",
            (None, Some(_)) => "is missing",
            (Some(a), Some(b)) if a.vectors != b.vectors => "has other vectors",
            (Some(a), Some(b)) if a.payload != b.payload => "has another payload",
            _ => continue,
        };
        differing.push(format!("point {id} {what}"));
    }
    let count = differing.len();
    differing.truncate(5);
    if found.indexes != expected.indexes {
        let (found, expected) = (&found.indexes, &expected.indexes);
        differing.push(format!("indexes {found:?} instead of {expected:?}"));
    }
    format!("{count} points differ: {}", differing.join(", "))
}

/// Asks questions made from `seed`.
pub(crate) fn answers(collection: &Collection, plain: &Plain, seed: u64) -> Outcome {
    let mut dice = Dice::new(seed);
    let held = plain.points.len() as u64;
    let counted = told("counting", collection.count(None))?;
    ensure!(
        counted == held,
        "{counted} points counted instead of {held}"
    );
    let filter = dice.clauses().filter();
    page(collection, plain, &mut dice, &filter)?;
    for field in ["size", "at"] {
        ordered(collection, plain, &mut dice, field, &filter)?;
    }
    for exact in [true, false] {
        search(collection, plain, &mut dice, &filter, exact)
            .map_err(|what| format!("{what} (exact {exact}, {filter:?})"))?;
    }
    Ok(())
}

fn page(collection: &Collection, plain: &Plain, dice: &mut Dice, filter: &Filter) -> Outcome {
    let matching = plain.matching(filter);
    let counted = told("counting", collection.count(Some(filter)))?;
    let truth = matching.len() as u64;
    ensure!(
        counted == truth,
        "{counted} of {filter:?} instead of {truth}"
    );
    let limit = 1 + dice.roll(50) as usize;
    let request = ScrollRequest {
        filter: Some(filter.clone()),
        limit,
        offset: None,
        order_by: None,
        with_payload: PayloadSelector::All,
        with_vector: VectorSelector::All,
    };
    let page = told("scrolling", collection.scroll(&request))?;
    let expected: Vec<PointId> = matching.iter().copied().take(limit).collect();
    let found: Vec<PointId> = page.points.iter().map(|record| record.id).collect();
    ensure!(
        found == expected,
        "page of {filter:?}: {found:?} instead of {expected:?}"
    );
    let next = matching.iter().copied().nth(limit);
    ensure!(
        page.next_offset == next,
        "next page: {:?} instead of {next:?}",
        page.next_offset
    );
    for record in page.points {
        let stored = &plain.points[&record.id];
        let vectors: BTreeMap<String, Vec<f32>> =
            record.vectors.unwrap_or_default().into_iter().collect();
        ensure!(vectors == stored.vectors, "vectors of {}", record.id);
        ensure!(
            record.payload.as_ref() == Some(&stored.payload),
            "payload of {}: {:?} instead of {:?}",
            record.id,
            record.payload,
            stored.payload
        );
    }
    Ok(())
}

/// The first points by a field's values, where it has an index that keeps an order.
fn ordered(
    collection: &Collection,
    plain: &Plain,
    dice: &mut Dice,
    field: &str,
    filter: &Filter,
) -> Outcome {
    let limit = 1 + dice.roll(30) as usize;
    let direction = match dice.roll(2) {
        0 => Direction::Ascending,
        _ => Direction::Descending,
    };
    let request = ScrollRequest {
        filter: Some(filter.clone()),
        limit,
        offset: None,
        order_by: Some(OrderBy {
            key: field.to_owned(),
            order: Order {
                direction,
                start_from: None,
            },
        }),
        with_payload: PayloadSelector::None,
        with_vector: VectorSelector::None,
    };
    let answer = collection.scroll(&request);
    if !plain.indexes.contains_key(field) {
        ensure!(answer.is_err(), "ordered by {field} without an index");
        return Ok(());
    }
    let mut expected = plain.ordered(field, filter);
    if direction == Direction::Descending {
        expected.reverse();
    }
    expected.truncate(limit);
    let page = told("scrolling in order", answer)?;
    let found: Vec<_> = page
        .points
        .iter()
        .filter_map(|record| Some((record.order_value?, record.id)))
        .collect();
    ensure!(
        found == expected,
        "by {field} {direction:?} with {filter:?}: {found:?} instead of {expected:?}"
    );
    Ok(())
}

fn search(
    collection: &Collection,
    plain: &Plain,
    dice: &mut Dice,
    filter: &Filter,
    exact: bool,
) -> Outcome {
    let (name, dim) = VECTORS[dice.roll(2) as usize];
    let query = dice.vector(dim);
    let limit = 1 + dice.roll(20) as usize;
    let truth = plain.search(name, &query, filter, limit);
    let request = SearchRequest {
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
    };
    let found = told("searching", collection.search(&request))?;
    let is_close = |a: f32, b: f32| (a - b).abs() < 1e-4 * (1.0 + b);
    let counts = (found.len(), truth.len());
    ensure!(
        counts.0 == counts.1,
        "{} hits instead of {}",
        counts.0,
        counts.1
    );
    let ids: BTreeSet<PointId> = found.iter().map(|scored| scored.point.id).collect();
    ensure!(
        ids.len() == found.len(),
        "a point was found twice: {found:?}"
    );
    let matching = plain.matching(filter);
    for (rank, scored) in found.iter().enumerate() {
        let id = scored.point.id;
        ensure!(matching.contains(&id), "{id} was found and does not match");
        let Some(vector) = plain.points[&id].vectors.get(name) else {
            return Err(format!("{id} was found and has no vector '{name}'"));
        };
        let score = distance(vector, &query);
        let given = scored.score;
        ensure!(
            is_close(given, score),
            "{id} scored {given} instead of {score}"
        );
        ensure!(
            !exact || is_close(given, truth[rank].1),
            "{id} at rank {rank} with {given}, the truth is {:?}",
            truth[rank]
        );
    }
    Ok(())
}
