//! Filters: Qdrant's JSON to the syntax tree that the engine evaluates.
//!
//! A condition is told by its keys: `key` is a test of a field, `has_id`, `has_vector`, `is_empty`,
//! `is_null`, `nested` are what they say, `must`, `should`, `must_not`, `min_should` make a nested filter. A misspelt key
//! would change which points match, so here, unlike elsewhere, unknown keys are refused.

use flatwater_segment::payload::datetime::Datetime;
use flatwater_segment::payload::filter::{
    Bounds, Condition, FieldCondition, FieldTest, Filter, MatchValue, MinShould, NestedCondition,
    Range,
};
use serde_json::Value;

use super::ids::decode_ids;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, Rules, short, wrong_type};
use crate::validate::{self, NESTING_MAX};

/// Clauses of a filter.
const CLAUSES: [&str; 4] = ["must", "should", "must_not", "min_should"];

/// Conditions that Qdrant has and we do not serve yet.
const CONDITIONS_NOT_SERVED: [&str; 1] = ["slice"];

/// Tests of a field that Qdrant has and we do not serve yet.
const TESTS_NOT_SERVED: [&str; 3] = ["geo_bounding_box", "geo_radius", "geo_polygon"];

/// Matches that Qdrant has and we do not serve yet.
const MATCHES_NOT_SERVED: [&str; 4] = ["text", "text_any", "phrase", "prefix"];

/// Reads the field `name` of a body as a filter, if it is there.
pub(crate) fn decode_filter_field(fields: &Fields<'_>, name: &str) -> Result<Option<Filter>> {
    fields
        .value(name)
        .map(|value| filter(value, fields.at(name), 1))
        .transpose()
}

fn filter(value: &Value, path: String, level: usize) -> Result<Filter> {
    if level > NESTING_MAX {
        return Err(ApiError::Wrong(format!(
            "filter is nested deeper than {NESTING_MAX} levels (limit {NESTING_MAX})"
        )));
    }
    let fields = Fields::of(value, path)?;
    if let Some(unknown) = fields
        .map()
        .keys()
        .find(|key| !CLAUSES.contains(&key.as_str()))
    {
        return Err(ApiError::Format(format!(
            "{}: unknown field `{}`, expected one of `must`, `should`, `must_not`, `min_should`",
            fields.path(),
            short(unknown)
        )));
    }
    Ok(Filter {
        must: clause(&fields, "must", level)?,
        should: clause(&fields, "should", level)?,
        must_not: clause(&fields, "must_not", level)?,
        min_should: min_should(&fields, level)?,
    })
}

/// A clause is one condition or a list of them.
fn clause(fields: &Fields<'_>, name: &str, level: usize) -> Result<Vec<Condition>> {
    match fields.value(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => conditions(list, &fields.at(name), level),
        Some(one) => Ok(vec![condition(one, fields.at(name), level)?]),
    }
}

fn conditions(list: &[Value], path: &str, level: usize) -> Result<Vec<Condition>> {
    list.iter()
        .enumerate()
        .map(|(i, value)| condition(value, format!("{path}[{i}]"), level))
        .collect()
}

fn min_should(fields: &Fields<'_>, level: usize) -> Result<Option<MinShould>> {
    let Some(inner) = fields.object("min_should")? else {
        return Ok(None);
    };
    inner.required("conditions")?;
    inner.required("min_count")?;
    let conditions = clause(&inner, "conditions", level)?;
    let min_count = inner.count("min_count")?.unwrap_or_default();
    let mut rules = Rules::default();
    rules.at_least(&inner.at("min_count"), min_count, 1);
    rules.finish()?;
    Ok(Some(MinShould {
        conditions,
        min_count,
    }))
}

fn condition(value: &Value, path: String, level: usize) -> Result<Condition> {
    let fields = Fields::of(value, path.clone())?;
    let has = |name: &str| fields.map().contains_key(name);
    if let Some(name) = CONDITIONS_NOT_SERVED.into_iter().find(|name| has(name)) {
        return Err(ApiError::NotServed(fields.at(name)));
    }
    if has("key") {
        return field_condition(&fields).map(Condition::Field);
    }
    if has("has_id") {
        let list = match fields.required("has_id")? {
            Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        return decode_ids(list, &fields.at("has_id")).map(Condition::HasId);
    }
    if has("has_vector") {
        fields.required("has_vector")?;
        let name = fields.string("has_vector")?.unwrap_or_default();
        return Ok(Condition::HasVector(name.to_owned()));
    }
    if has("nested") {
        return nested(&fields, level).map(Condition::Nested);
    }
    if has("is_empty") {
        return key_of(&fields, "is_empty").map(Condition::IsEmpty);
    }
    if has("is_null") {
        return key_of(&fields, "is_null").map(Condition::IsNull);
    }
    filter(value, path, level + 1).map(Condition::Filter)
}

/// `{"nested": {"key": "path", "filter": {}}}`.
fn nested(fields: &Fields<'_>, level: usize) -> Result<NestedCondition> {
    let value = fields.required("nested")?;
    let inner = Fields::of(value, fields.at("nested"))?;
    let key = payload_key(&inner)?;
    let filter = filter(inner.required("filter")?, inner.at("filter"), level + 1)?;
    Ok(NestedCondition { key, filter })
}

/// The path in `{"is_empty": {"key": "path"}}`.
fn key_of(fields: &Fields<'_>, name: &str) -> Result<String> {
    fields.required(name)?;
    match fields.object(name)? {
        Some(inner) => payload_key(&inner),
        None => Err(ApiError::Format(format!(
            "missing field `{}`",
            fields.at(name)
        ))),
    }
}

fn payload_key(fields: &Fields<'_>) -> Result<String> {
    fields.required("key")?;
    let key = fields.string("key")?.unwrap_or_default();
    validate::json_path(key)?;
    Ok(key.to_owned())
}

fn field_condition(fields: &Fields<'_>) -> Result<FieldCondition> {
    let key = payload_key(fields)?;
    if let Some(name) = TESTS_NOT_SERVED
        .into_iter()
        .find(|name| fields.value(name).is_some())
    {
        return Err(ApiError::NotServed(fields.at(name)));
    }
    let mut tests = Vec::new();
    if let Some(inner) = fields.object("match")? {
        tests.push(field_match(&inner)?);
    }
    if let Some(inner) = fields.object("range")? {
        tests.push(range(&inner)?);
    }
    if let Some(inner) = fields.object("values_count")? {
        tests.push(FieldTest::ValuesCount(Bounds {
            lt: inner.count("lt")?,
            lte: inner.count("lte")?,
            gt: inner.count("gt")?,
            gte: inner.count("gte")?,
        }));
    }
    if let Some(wanted) = fields.bool("is_empty")? {
        tests.push(FieldTest::IsEmpty(wanted));
    }
    if let Some(wanted) = fields.bool("is_null")? {
        tests.push(FieldTest::IsNull(wanted));
    }
    let mut rest = tests.into_iter();
    match (rest.next(), rest.next()) {
        (Some(test), None) => Ok(FieldCondition { key, test }),
        (None, _) => {
            let mut rules = Rules::default();
            rules.broken(
                fields.path(),
                "At least one field condition must be specified",
            );
            rules.finish()?;
            Err(ApiError::Format(format!("{}: no condition", fields.path())))
        }
        (Some(_), Some(_)) => Err(ApiError::Wrong(format!(
            "{}: more than one test in the condition on `{}`; give each its own condition",
            fields.path(),
            short(&key)
        ))),
    }
}

fn field_match(fields: &Fields<'_>) -> Result<FieldTest> {
    if let Some(name) = MATCHES_NOT_SERVED
        .into_iter()
        .find(|name| fields.value(name).is_some())
    {
        return Err(ApiError::NotServed(fields.at(name)));
    }
    if let Some(value) = fields.value("value") {
        return match value {
            Value::Bool(flag) => Ok(FieldTest::Value(MatchValue::Bool(*flag))),
            other => keyword_or_integer(other, &fields.at("value")).map(FieldTest::Value),
        };
    }
    if let Some(list) = fields.array("any")? {
        return variants(list, &fields.at("any")).map(FieldTest::Any);
    }
    if let Some(list) = fields.array("except")? {
        return variants(list, &fields.at("except")).map(FieldTest::Except);
    }
    Err(ApiError::Format(format!(
        "{}: expected one of `value`, `any`, `except`",
        fields.path()
    )))
}

/// Values of `any` and `except`: all texts or all integers.
fn variants(list: &[Value], path: &str) -> Result<Vec<MatchValue>> {
    let values = list
        .iter()
        .enumerate()
        .map(|(i, value)| keyword_or_integer(value, &format!("{path}[{i}]")))
        .collect::<Result<Vec<_>>>()?;
    let texts = values
        .iter()
        .filter(|value| matches!(value, MatchValue::Keyword(_)))
        .count();
    if texts != 0 && texts != values.len() {
        return Err(ApiError::Format(format!(
            "{path}: texts and integers may not be mixed"
        )));
    }
    Ok(values)
}

fn keyword_or_integer(value: &Value, path: &str) -> Result<MatchValue> {
    match value {
        Value::String(text) => Ok(MatchValue::Keyword(text.clone())),
        Value::Number(number) => number
            .as_i64()
            .map(MatchValue::Integer)
            .ok_or_else(|| wrong_type(path, value, "a text or a 64-bit integer")),
        other => Err(wrong_type(path, other, "a text or a 64-bit integer")),
    }
}

/// Bounds are all numbers or all moments; without any, every number is inside.
fn range(fields: &Fields<'_>) -> Result<FieldTest> {
    const NAMES: [&str; 4] = ["lt", "lte", "gt", "gte"];
    let is_text = |name: &&str| matches!(fields.value(name), Some(Value::String(_)));
    if NAMES.iter().any(is_text) {
        return Ok(FieldTest::DatetimeRange(Bounds {
            lt: moment(fields, "lt")?,
            lte: moment(fields, "lte")?,
            gt: moment(fields, "gt")?,
            gte: moment(fields, "gte")?,
        }));
    }
    Ok(FieldTest::Range(Range {
        lt: fields.number("lt")?,
        lte: fields.number("lte")?,
        gt: fields.number("gt")?,
        gte: fields.number("gte")?,
    }))
}

fn moment(fields: &Fields<'_>, name: &str) -> Result<Option<Datetime>> {
    let Some(text) = fields.string(name)? else {
        return Ok(None);
    };
    decode_datetime(text, &fields.at(name)).map(Some)
}

/// Reads a moment in time; the error has Qdrant's words.
pub(crate) fn decode_datetime(text: &str, path: &str) -> Result<Datetime> {
    Datetime::parse(text).ok_or_else(|| {
        ApiError::Format(format!(
            "{path}: '{}' is not in a supported date/time format, please use RFC 3339",
            short(text)
        ))
    })
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
