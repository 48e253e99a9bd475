//! The hot body: points to store, read straight into `f32` without a JSON tree in between.
//!
//! 1. One pass finds the depth of the body (and refuses what is too deep for the reader's stack).
//! 2. The typed reader takes either form, `{"points": [..]}` or `{"batch": {..}}`.
//! 3. Only if that fails, or a number overflowed, [`super::diagnose`] reads the body again to find
//!    out which point and vector it was.

use std::fmt;

use flatwater_engine::collection::update::PointInput;
use flatwater_engine::config::collection::UNNAMED;
use flatwater_segment::payload::Payload;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::diagnose;
use super::ids::WireId;
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::short;
use crate::validate::{self, NESTING_MAX};

#[derive(Deserialize)]
struct Body {
    points: Option<Vec<Point>>,
    batch: Option<Batch>,
    shard_key: Option<IgnoredAny>,
    update_filter: Option<IgnoredAny>,
    update_mode: Option<String>,
}

#[derive(Deserialize)]
struct Point {
    id: WireId,
    vector: Vectors<Vec<f32>>,
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Batch {
    ids: Vec<WireId>,
    vectors: Vectors<Vec<Vec<f32>>>,
    payloads: Option<Vec<Option<Payload>>>,
}

/// One unnamed thing, or things by name: a vector of a point, or a column of vectors of a batch.
enum Vectors<T> {
    Unnamed(T),
    Named(Vec<(String, T)>),
}

impl<T> Vectors<T> {
    fn into_named(self) -> Vec<(String, T)> {
        match self {
            Self::Unnamed(vector) => vec![(UNNAMED.to_owned(), vector)],
            Self::Named(list) => list,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Vectors<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(VectorsVisitor(std::marker::PhantomData))
    }
}

struct VectorsVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for VectorsVisitor<T> {
    type Value = Vectors<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of numbers or an object of named vectors")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> std::result::Result<Self::Value, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(seq)).map(Vectors::Unnamed)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Self::Value, A::Error> {
        let NamedList(list) = NamedList::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Vectors::Named(list))
    }
}

/// An object as a list, each name at most once.
struct NamedList<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NamedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(NamedListVisitor(std::marker::PhantomData))
    }
}

struct NamedListVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedListVisitor<T> {
    type Value = NamedList<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of named vectors")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Self::Value, A::Error> {
        let mut list: Vec<(String, T)> = Vec::new();
        while let Some((name, vector)) = map.next_entry::<String, T>()? {
            if list.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format!(
                    "vector `{}` is given twice",
                    short(&name)
                )));
            }
            list.push((name, vector));
        }
        Ok(NamedList(list))
    }
}

/// Reads the body of `PUT /collections/{c}/points`.
///
/// # Errors
/// Undecodable JSON, an invalid id, both or none of `points` and `batch`, columns of different
/// lengths, a number that is no finite `f32`, payload nested too deep, a field not served yet: 400.
pub fn decode_upsert(bytes: &[u8]) -> Result<Vec<PointInput>> {
    decode_points(bytes, true)
}

/// Reads points, as a list or, if `with_batch`, in columns too.
pub(crate) fn decode_points(bytes: &[u8], with_batch: bool) -> Result<Vec<PointInput>> {
    let depth = body::depth(bytes)?;
    let body: Body = body::read(bytes).map_err(|error| {
        diagnose::upsert(bytes).unwrap_or_else(|| ApiError::Format(error.to_string()))
    })?;
    refuse_not_served(&body)?;
    let points = match (body.points, body.batch) {
        (Some(points), None) => points.into_iter().map(point_input).collect(),
        (None, Some(batch)) if with_batch => transpose(batch)?,
        _ if !with_batch => return Err(ApiError::Format("missing field `points`".to_owned())),
        _ => {
            return Err(ApiError::Format(
                "expected exactly one of `points` and `batch`".to_owned(),
            ));
        }
    };
    for point in &points {
        let mut numbers = point.vectors.iter().flat_map(|(_, vector)| vector);
        if !numbers.all(|number| number.is_finite()) {
            return Err(
                diagnose::upsert(bytes).unwrap_or_else(|| diagnose::not_finite_somewhere(point.id))
            );
        }
        if let (true, Some(payload)) = (depth > NESTING_MAX, &point.payload) {
            validate::payload_depth(&format!("point {}", point.id), payload)?;
        }
    }
    Ok(points)
}

fn refuse_not_served(body: &Body) -> Result<()> {
    if body.shard_key.is_some() {
        return Err(ApiError::NotServed("shard_key".to_owned()));
    }
    if body.update_filter.is_some() {
        return Err(ApiError::NotServed("update_filter".to_owned()));
    }
    match body.update_mode.as_deref() {
        None | Some("upsert") => Ok(()),
        Some(mode @ ("insert_only" | "update_only")) => {
            Err(ApiError::NotServed(format!("update_mode: {mode}")))
        }
        Some(other) => Err(ApiError::Format(format!(
            "update_mode: unknown variant `{}`, \
             expected one of `upsert`, `insert_only`, `update_only`",
            short(other)
        ))),
    }
}

fn point_input(point: Point) -> PointInput {
    PointInput {
        id: point.id.0,
        vectors: point.vector.into_named(),
        payload: point.payload,
    }
}

/// Columns to rows.
fn transpose(batch: Batch) -> Result<Vec<PointInput>> {
    let count = batch.ids.len();
    let same_length = |what: &str, length: usize| {
        if length == count {
            return Ok(());
        }
        Err(ApiError::Wrong(format!(
            "number of ids and {what} must be equal ({count} != {length})"
        )))
    };
    let columns = batch.vectors.into_named();
    for (name, column) in &columns {
        same_length(&format!("vectors of `{}`", short(name)), column.len())?;
    }
    let payloads = batch.payloads.unwrap_or_else(|| vec![None; count]);
    same_length("payloads", payloads.len())?;
    let mut points: Vec<PointInput> = batch
        .ids
        .into_iter()
        .zip(payloads)
        .map(|(id, payload)| PointInput {
            id: id.0,
            vectors: Vec::with_capacity(columns.len()),
            payload,
        })
        .collect();
    for (name, column) in columns {
        for (point, vector) in points.iter_mut().zip(column) {
            point.vectors.push((name.clone(), vector));
        }
    }
    Ok(points)
}

#[cfg(test)]
#[path = "upsert_tests.rs"]
mod tests;
