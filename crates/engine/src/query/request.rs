//! Requests and answers of reads.

use flatwater_segment::PointId;
pub use flatwater_segment::field::order::{Direction, Order, OrderValue};
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::filter::Filter;

/// Which parts of the payload come back.
#[derive(Clone, Debug, PartialEq)]
pub enum PayloadSelector {
    /// Nothing.
    None,
    /// All of it.
    All,
    /// Only these paths.
    Include(Vec<String>),
    /// All but these paths.
    Exclude(Vec<String>),
}

/// Which vectors come back.
#[derive(Clone, Debug, PartialEq)]
pub enum VectorSelector {
    /// None.
    None,
    /// All.
    All,
    /// Those with these names.
    Names(Vec<String>),
}

/// What a search is near to.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryTarget {
    /// This vector.
    Vector(Vec<f32>),
    /// The vector of this point, which is left out of the answer.
    Point(PointId),
}

/// A nearest-neighbour search.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// Near to what.
    pub target: QueryTarget,
    /// Name of the vector, `""` for the unnamed one.
    pub using: String,
    /// Which points count.
    pub filter: Option<Filter>,
    /// Beam width; `None` = the collection's `ef_construct`.
    pub hnsw_ef: Option<usize>,
    /// Compare with every point, with the original vectors.
    pub exact: bool,
    /// Only points that are strictly better than this, in the unit that a user sees.
    pub score_threshold: Option<f32>,
    /// At most so many points, any `usize`.
    pub limit: usize,
    /// Leave out the best so many.
    pub offset: usize,
    /// Payload to return.
    pub with_payload: PayloadSelector,
    /// Vectors to return.
    pub with_vector: VectorSelector,
}

/// A point and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredPoint {
    /// The point, with the selected parts.
    pub point: Record,
    /// `seq` of its last change.
    pub version: u64,
    /// In the unit that a user sees.
    pub score: f32,
}

/// A point with the parts that were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Id.
    pub id: PointId,
    /// Payload, if asked for.
    pub payload: Option<Payload>,
    /// Vectors by name, if asked for.
    pub vectors: Option<Vec<(String, Vec<f32>)>>,
    /// The value that put the point in its place, if it was asked for in an order.
    pub order_value: Option<OrderValue>,
}

/// The order of a field's values.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy {
    /// Payload path; it needs an index of integers, floats or datetimes.
    pub key: String,
    /// Which way, and from which value on.
    pub order: Order,
}

/// A walk over points in the order of their ids, or of a field's values.
#[derive(Clone, Debug)]
pub struct ScrollRequest {
    /// Which points count.
    pub filter: Option<Filter>,
    /// At most so many, any `usize` above 0.
    pub limit: usize,
    /// First id to return; none with `order_by`.
    pub offset: Option<PointId>,
    /// Order by the values of a field instead: a point without values does not come, one with several
    /// comes once for each.
    pub order_by: Option<OrderBy>,
    /// Payload to return.
    pub with_payload: PayloadSelector,
    /// Vectors to return.
    pub with_vector: VectorSelector,
}

/// One page of a walk.
#[derive(Clone, Debug, PartialEq)]
pub struct ScrollPage {
    /// The points, ascending by id or in the order asked for.
    pub points: Vec<Record>,
    /// Where the next page starts; `None` at the end, and in an order of values.
    pub next_offset: Option<PointId>,
}
