//! From a row of a view to what the caller asked to see of it.

use flatwater_index::Row;
use flatwater_segment::PointId;
use flatwater_segment::payload::path::JsonPath;
use flatwater_segment::payload::{Payload, select};
use flatwater_segment::view::SegmentView;

use super::request::{PayloadSelector, Record, VectorSelector};
use crate::error::Result;
use crate::shard::parse_path;

/// Selectors with their paths parsed, once a request.
#[derive(Debug)]
pub(super) struct Selectors<'a> {
    payload: ParsedSelector,
    vectors: &'a VectorSelector,
}

#[derive(Debug)]
enum ParsedSelector {
    None,
    All,
    Include(Vec<JsonPath>),
    Exclude(Vec<JsonPath>),
}

impl<'a> Selectors<'a> {
    /// Parses the paths.
    pub(super) fn new(payload: &PayloadSelector, vectors: &'a VectorSelector) -> Result<Self> {
        let parse = |paths: &[String]| -> Result<Vec<JsonPath>> {
            paths.iter().map(|path| parse_path(path)).collect()
        };
        let payload = match payload {
            PayloadSelector::None => ParsedSelector::None,
            PayloadSelector::All => ParsedSelector::All,
            PayloadSelector::Include(paths) => ParsedSelector::Include(parse(paths)?),
            PayloadSelector::Exclude(paths) => ParsedSelector::Exclude(parse(paths)?),
        };
        Ok(Self { payload, vectors })
    }

    /// The record of a row, with the parts that were asked for.
    pub(super) fn record(&self, view: &SegmentView, row: Row, id: PointId) -> Result<Record> {
        Ok(Record {
            id,
            payload: self.payload_of(view, row)?,
            vectors: self.vectors_of(view, row),
            order_value: None,
        })
    }

    fn payload_of(&self, view: &SegmentView, row: Row) -> Result<Option<Payload>> {
        Ok(match &self.payload {
            ParsedSelector::None => None,
            ParsedSelector::All => Some(view.payload_of(row)?),
            ParsedSelector::Include(paths) => Some(select::include(&view.payload_of(row)?, paths)),
            ParsedSelector::Exclude(paths) => Some(select::exclude(&view.payload_of(row)?, paths)),
        })
    }

    fn vectors_of(&self, view: &SegmentView, row: Row) -> Option<Vec<(String, Vec<f32>)>> {
        let is_wanted = |name: &str| match self.vectors {
            VectorSelector::None => false,
            VectorSelector::All => true,
            VectorSelector::Names(names) => names.iter().any(|wanted| wanted == name),
        };
        if *self.vectors == VectorSelector::None {
            return None;
        }
        let vectors = view.vectors_of(row).filter(|(name, _)| is_wanted(name));
        Some(
            vectors
                .map(|(name, vector)| (name.to_owned(), vector.to_vec()))
                .collect(),
        )
    }
}
