//! Parts of points that come back, and points that an update is about, in the shape of REST.

use qdrant_client::qdrant;
use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use qdrant_client::qdrant::{with_payload_selector, with_vectors_selector};
use serde_json::{Value, json};

use super::shape::Shape;
use super::{filter, ids};
use crate::error::Result;

/// `with_payload`.
pub(super) fn payload(selector: Option<qdrant::WithPayloadSelector>) -> Option<Value> {
    use with_payload_selector::SelectorOptions;
    Some(match selector?.selector_options? {
        SelectorOptions::Enable(flag) => json!(flag),
        SelectorOptions::Include(list) => json!({ "include": list.fields }),
        SelectorOptions::Exclude(list) => json!({ "exclude": list.fields }),
    })
}

/// `with_vector`.
pub(super) fn vectors(selector: Option<qdrant::WithVectorsSelector>) -> Option<Value> {
    use with_vectors_selector::SelectorOptions;
    Some(match selector?.selector_options? {
        SelectorOptions::Enable(flag) => json!(flag),
        SelectorOptions::Include(list) => json!(list.names),
    })
}

/// Adds `points` or `filter`.
pub(super) fn points(shape: Shape, selector: Option<qdrant::PointsSelector>) -> Result<Shape> {
    match selector.and_then(|selector| selector.points_selector_one_of) {
        None => Ok(shape),
        Some(PointsSelectorOneOf::Points(list)) => {
            let ids = list.ids.into_iter().enumerate();
            let ids = ids
                .map(|(at, id)| ids::shape(id, &format!("points[{at}]")))
                .collect::<Result<Vec<_>>>()?;
            Ok(shape.with("points", Some(ids)))
        }
        Some(PointsSelectorOneOf::Filter(filter)) => {
            Ok(shape.with("filter", Some(filter::shape(filter, "filter")?)))
        }
    }
}
