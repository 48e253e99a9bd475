//! Series of collections, computed from the view that each has at this moment.

use std::fmt;

use flatwater_engine::collection::counts::{Counts, VectorCounts};
use flatwater_engine::collection::info::JobReport;
use flatwater_engine::collection::segments::SegmentState;
use flatwater_engine::collection::work::{Basis, Estimate, JobsReport};
use flatwater_engine::engine::Engine;

use super::families::{Families, Label, label};

/// What one collection tells.
struct Told {
    name: String,
    counts: Counts,
    work: JobsReport,
}

impl Told {
    fn id(&self) -> [Label; 1] {
        [label("id", &*self.name)]
    }

    fn jobs(&self) -> impl Iterator<Item = ([Label; 3], &JobReport, Estimate)> {
        self.work.running.iter().map(move |(job, rest)| {
            let labels = [
                label("id", &*self.name),
                label("job", job.id.to_string()),
                label("optimizer", job.optimizer.name()),
            ];
            (labels, job, *rest)
        })
    }
}

/// Writes all of them.
pub(super) fn encode(out: &mut Families<'_>, engine: &Engine) -> fmt::Result {
    let open = engine.open_collections().into_iter();
    let told: Vec<Told> = open
        .map(|(name, collection)| Told {
            name,
            counts: collection.counts(),
            work: collection.jobs(),
        })
        .collect();
    qdrants(out, &told)?;
    segments(out, &told)?;
    jobs(out, &told)
}

/// Those that Qdrant has too.
fn qdrants(out: &mut Families<'_>, told: &[Told]) -> fmt::Result {
    out.gauge("collections_total", "Collections.", told.len() as u64)?;
    let vectors = || told.iter().flat_map(|one| one.counts.vectors.values());
    let live: u64 = vectors().map(|vector| vector.live).sum();
    out.gauge(
        "collections_vector_total",
        "Vectors in all collections.",
        live,
    )?;
    let points = told.iter().map(|one| (one.id(), one.counts.points));
    out.gauges("collection_points", "Points, exactly.", points)?;
    let vectors = each_vector(told, "collection", |vector| vector.live);
    out.gauges("collection_vectors", "Vectors by name.", vectors)?;
    let outside = each_vector(told, "id", VectorCounts::unindexed);
    out.gauges(
        "collection_indexed_only_excluded_points",
        "Vectors outside any graph: a scan of their codes finds them, indexed_only leaves them out.",
        outside,
    )?;
    let running = told
        .iter()
        .map(|one| (one.id(), one.work.running.len() as u64));
    out.gauges(
        "collection_running_optimizations",
        "Background jobs at work.",
        running,
    )?;
    let queued = told
        .iter()
        .map(|one| (one.id(), one.counts.update_queue_length as u64));
    out.gauges(
        "collection_update_queue_length",
        "Updates that wait to be applied.",
        queued,
    )
}

fn each_vector<'a>(
    told: &'a [Told],
    id: &'static str,
    number: impl Fn(VectorCounts) -> u64 + Copy + 'a,
) -> impl Iterator<Item = ([Label; 2], u64)> + 'a {
    told.iter().flat_map(move |one| {
        one.counts.vectors.iter().map(move |(name, counts)| {
            let labels = [label(id, &*one.name), label("vector", &**name)];
            (labels, number(*counts))
        })
    })
}

fn segments(out: &mut Families<'_>, told: &[Told]) -> fmt::Result {
    let by_state = told.iter().flat_map(|one| {
        SegmentState::ALL.map(|state| {
            let count = one.counts.segments.get(&state).copied();
            let labels = [label("id", &*one.name), label("state", state.name())];
            (labels, count.unwrap_or_default())
        })
    });
    out.gauges("flatwater_segments", "Segments by state.", by_state)?;
    let dead = told.iter().map(|one| (one.id(), one.counts.deleted_rows));
    out.gauges(
        "flatwater_deleted_rows",
        "Rows of deleted and replaced points.",
        dead,
    )?;
    let vectors = told.iter().map(|one| (one.id(), one.counts.backlog().0));
    out.gauges(
        "flatwater_backlog_vectors",
        "Vectors outside any graph.",
        vectors,
    )?;
    let bytes = told.iter().map(|one| (one.id(), one.counts.backlog().1));
    out.gauges(
        "flatwater_backlog_bytes",
        "Bytes of the vectors outside any graph.",
        bytes,
    )?;
    let queued = told
        .iter()
        .map(|one| (one.id(), one.work.queued.len() as u64));
    out.gauges(
        "flatwater_queued_optimizations",
        "Background jobs that are planned.",
        queued,
    )
}

fn jobs(out: &mut Families<'_>, told: &[Told]) -> fmt::Result {
    let jobs = || told.iter().flat_map(Told::jobs);
    let counted = || jobs().filter_map(|(labels, job, _)| Some((labels, job.progress.counts()?)));
    let done = counted().map(|(labels, (done, _))| (labels, done));
    out.gauges(
        "flatwater_job_rows_done",
        "Rows done of a job's present step.",
        done,
    )?;
    let all = counted().map(|(labels, (_, all))| (labels, all));
    out.gauges("flatwater_job_rows", "Rows of a job's present step.", all)?;
    let rests = jobs().flat_map(|(labels, _, rest)| bounds(labels.to_vec(), rest));
    out.gauges(
        "flatwater_job_eta_seconds",
        "How long the rest of a job takes.",
        rests,
    )?;
    let left = |one: &Told| one.work.left.map(|left| (one.id().to_vec(), left));
    let lefts = told.iter().filter_map(left);
    let of_all = lefts
        .clone()
        .flat_map(|(labels, left)| bounds(labels, left));
    let help = "How long all work takes that runs and is queued, one after another.";
    out.gauges("flatwater_backlog_eta_seconds", help, of_all)?;
    let learnt = lefts.map(|(labels, left)| (labels, i64::from(left.basis != Basis::Prior)));
    let help = "Whether the estimate rests on jobs that were seen; 0 is a wide guess.";
    out.gauges("flatwater_backlog_eta_is_learnt", help, learnt)
}

/// An estimate as three series: the 10th percentile, the middle and the 90th percentile.
fn bounds(labels: Vec<Label>, estimate: Estimate) -> [(Vec<Label>, f64); 3] {
    let with = |bound: &str| {
        let mut labels = labels.clone();
        labels.push(label("bound", bound));
        labels
    };
    [
        (with("low"), estimate.low),
        (with("likely"), estimate.seconds),
        (with("high"), estimate.high),
    ]
}
