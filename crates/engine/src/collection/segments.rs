//! What the segments of a collection are, each with its state, size and age.

use flatwater_segment::parts::Segment;
use flatwater_segment::view::SegmentView;
use uuid::Uuid;

use super::Collection;
use crate::clock;
use crate::error::Result;
use crate::optimizer::gather;
use crate::optimizer::jobs::JobReport;
pub use crate::optimizer::policy::facts::{GraphSettings, Optimizer};

/// What may still happen to the rows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentState {
    /// It takes rows.
    Growing,
    /// It takes no more rows; it is sealed when its graphs are complete.
    Full,
    /// It is made of immutable files.
    Sealed,
}

impl SegmentState {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Growing, Self::Full, Self::Sealed];

    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Growing => "growing",
            Self::Full => "full",
            Self::Sealed => "sealed",
        }
    }

    pub(super) fn of(segment: &Segment) -> Self {
        if segment.is_sealed() {
            Self::Sealed
        } else if segment.is_full() {
            Self::Full
        } else {
            Self::Growing
        }
    }
}

/// One vector of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorReport {
    /// Name, `""` for the unnamed one.
    pub name: String,
    /// Dimensions.
    pub dim: usize,
    /// Live vectors.
    pub live: u64,
    /// Live vectors that the graph covers.
    pub indexed: u64,
    /// Settings of the graph; none where there is none.
    pub graph: Option<GraphSettings>,
}

/// A segment at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentReport {
    /// Its id.
    pub id: Uuid,
    /// Whether it takes rows.
    pub state: SegmentState,
    /// The job at work on it, and who wanted that: the growing graph takes rows, or the segment is
    /// written anew.
    pub job: Option<(Uuid, Optimizer)>,
    /// When it was made, milliseconds since 1970; none where its id does not tell (segments that were
    /// made before ids did).
    pub created_at_ms: Option<u64>,
    /// Rows, those of deleted and replaced points too.
    pub rows: u64,
    /// Live points.
    pub points: u64,
    /// Its vectors, by name.
    pub vectors: Vec<VectorReport>,
    /// Bytes of its files.
    pub disk_bytes: u64,
}

impl SegmentReport {
    /// Rows of points that were deleted or replaced.
    #[must_use]
    pub fn deleted(&self) -> u64 {
        self.rows - self.points
    }
}

/// The segments of one view, oldest first.
///
/// # Errors
/// `Io` where the files of one cannot be listed.
pub(super) fn list(collection: &Collection) -> Result<Vec<SegmentReport>> {
    let view = collection.shard.view();
    let (running, _) = collection.jobs.reports();
    let segments = view.segments.iter();
    segments.map(|segment| report(segment, &running)).collect()
}

fn report(view: &SegmentView, running: &[JobReport]) -> Result<SegmentReport> {
    let segment = view.segment();
    let id = segment.id();
    let is_at_work = |job: &&JobReport| job.segments.iter().any(|(input, _)| *input == id);
    // Where a graph takes rows while the segment is written anew, the latter is what ends the segment.
    let job = running.iter().rev().find(is_at_work);
    Ok(SegmentReport {
        id,
        state: SegmentState::of(segment),
        job: job.map(|job| (job.id, job.optimizer)),
        created_at_ms: clock::moment_of(id),
        rows: view.rows_len().into(),
        points: view.live_count(),
        vectors: (0..segment.columns().len())
            .map(|column| vector(view, column))
            .collect(),
        disk_bytes: segment.disk_bytes()?,
    })
}

fn vector(view: &SegmentView, place: usize) -> VectorReport {
    let column = &view.segment().columns()[place];
    VectorReport {
        name: column.spec().name.clone(),
        dim: column.spec().dim,
        live: view.live_vectors(place),
        indexed: view.indexed_vectors_of(place),
        graph: gather::graph_settings(column),
    }
}
