//! Filters in the shape of REST.

use qdrant_client::qdrant;
use qdrant_client::qdrant::condition::ConditionOneOf;
use qdrant_client::qdrant::r#match::MatchValue;
use serde_json::{Value, json};

use super::ids;
use super::moments::datetime_text;
use super::shape::{Shape, number_if, required};
use crate::error::{ApiError, Result};

/// The filter as an object. The reader of messages stops at 100 levels, two or more for each filter inside
/// another, which bounds the recursion here.
pub(super) fn shape(filter: qdrant::Filter, path: &str) -> Result<Value> {
    let clause = |name: &str, list: Vec<qdrant::Condition>| {
        let is_there = !list.is_empty();
        let list = conditions(list, &format!("{path}.{name}"))?;
        Ok::<_, crate::error::ApiError>(is_there.then_some(list))
    };
    let shape = Shape::default()
        .with("must", clause("must", filter.must)?)
        .with("should", clause("should", filter.should)?)
        .with("must_not", clause("must_not", filter.must_not)?);
    let Some(inner) = filter.min_should else {
        return Ok(shape.into());
    };
    let list = conditions(inner.conditions, &format!("{path}.min_should.conditions"))?;
    let inner = json!({ "conditions": list, "min_count": inner.min_count });
    Ok(shape.with("min_should", Some(inner)).into())
}

/// [`shape`] of what may be absent.
pub(super) fn shape_if(filter: Option<qdrant::Filter>, path: &str) -> Result<Option<Value>> {
    filter.map(|filter| shape(filter, path)).transpose()
}

fn conditions(list: Vec<qdrant::Condition>, path: &str) -> Result<Vec<Value>> {
    list.into_iter()
        .enumerate()
        .map(|(at, one)| condition(one, &format!("{path}[{at}]")))
        .collect()
}

fn condition(condition: qdrant::Condition, path: &str) -> Result<Value> {
    Ok(match required(path, condition.condition_one_of)? {
        ConditionOneOf::Field(field) => field_condition(field, path)?.into(),
        ConditionOneOf::IsEmpty(inner) => json!({ "is_empty": { "key": inner.key } }),
        ConditionOneOf::IsNull(inner) => json!({ "is_null": { "key": inner.key } }),
        ConditionOneOf::HasId(inner) => {
            let ids = inner.has_id.into_iter().enumerate();
            let ids = ids
                .map(|(at, id)| ids::shape(id, &format!("{path}.has_id[{at}]")))
                .collect::<Result<Vec<_>>>()?;
            json!({ "has_id": ids })
        }
        ConditionOneOf::Filter(filter) => shape(filter, path)?,
        ConditionOneOf::Nested(inner) => {
            let filter = shape_if(inner.filter, &format!("{path}.nested.filter"))?;
            let nested = Shape::default()
                .with("key", Some(inner.key))
                .with("filter", filter);
            json!({ "nested": Value::from(nested) })
        }
        ConditionOneOf::HasVector(inner) => json!({ "has_vector": inner.has_vector }),
        ConditionOneOf::Slice(_) => unread("slice"),
    })
}

/// A condition that its reader refuses by this name.
fn unread(name: &str) -> Value {
    Shape::default().with_unread(name, true).into()
}

fn field_condition(field: qdrant::FieldCondition, path: &str) -> Result<Shape> {
    // In REST both are one field, with numbers or with texts in it.
    let range = match (field.range, field.datetime_range) {
        (Some(_), Some(_)) => {
            return Err(ApiError::Wrong(format!(
                "{path}: `range` and `datetime_range` are both given; give each its own condition"
            )));
        }
        (Some(range), None) => Some(number_range(range, path)?),
        (None, Some(range)) => Some(datetime_range(range, path)?),
        (None, None) => None,
    };
    let has_match = match field.r#match {
        None => None,
        Some(inner) => Some(field_match(inner, path)?),
    };
    Ok(Shape::default()
        .with("key", Some(field.key))
        .with("match", has_match)
        .with("range", range)
        .with_unread("geo_bounding_box", field.geo_bounding_box.is_some())
        .with_unread("geo_radius", field.geo_radius.is_some())
        .with_unread("geo_polygon", field.geo_polygon.is_some())
        .with("values_count", field.values_count.map(values_count))
        .with("is_empty", field.is_empty)
        .with("is_null", field.is_null))
}

fn values_count(counts: qdrant::ValuesCount) -> Shape {
    Shape::default()
        .with("lt", counts.lt)
        .with("lte", counts.lte)
        .with("gt", counts.gt)
        .with("gte", counts.gte)
}

fn number_range(range: qdrant::Range, path: &str) -> Result<Shape> {
    let bound = |name: &str, value| number_if(&format!("{path}.range.{name}"), value);
    Ok(Shape::default()
        .with("lt", bound("lt", range.lt)?)
        .with("lte", bound("lte", range.lte)?)
        .with("gt", bound("gt", range.gt)?)
        .with("gte", bound("gte", range.gte)?))
}

fn datetime_range(range: qdrant::DatetimeRange, path: &str) -> Result<Shape> {
    let bound = |name: &str, value: Option<_>| {
        let path = format!("{path}.datetime_range.{name}");
        value.map(|value| datetime_text(value, &path)).transpose()
    };
    let shape = Shape::default()
        .with("lt", bound("lt", range.lt)?)
        .with("lte", bound("lte", range.lte)?)
        .with("gt", bound("gt", range.gt)?)
        .with("gte", bound("gte", range.gte)?);
    Ok(shape)
}

fn field_match(inner: qdrant::Match, path: &str) -> Result<Value> {
    Ok(
        match required(&format!("{path}.match"), inner.match_value)? {
            MatchValue::Keyword(text) => json!({ "value": text }),
            MatchValue::Integer(integer) => json!({ "value": integer }),
            MatchValue::Boolean(flag) => json!({ "value": flag }),
            MatchValue::Keywords(list) => json!({ "any": list.strings }),
            MatchValue::Integers(list) => json!({ "any": list.integers }),
            MatchValue::ExceptKeywords(list) => json!({ "except": list.strings }),
            MatchValue::ExceptIntegers(list) => json!({ "except": list.integers }),
            MatchValue::Text(text) => json!({ "text": text }),
            MatchValue::Phrase(text) => json!({ "phrase": text }),
            MatchValue::TextAny(text) => json!({ "text_any": text }),
            MatchValue::Prefix(text) => json!({ "prefix": text }),
            MatchValue::Substring(text) => json!({ "substring": text }),
        },
    )
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
