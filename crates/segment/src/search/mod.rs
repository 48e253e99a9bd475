//! Nearest rows of one segment.
//!
//! 1. `plan` chooses the way: originals of all rows, codes of the rows that match, or the graph.
//! 2. The graph answers for the rows it covers; the scan of 1-bit codes for the rows behind it, and
//!    the originals for the few first rows that have no codes yet. No live row is left out.
//! 3. Every candidate is scored again with its original vector: reported scores are exact.

pub mod order;
pub mod plan;

use std::cell::RefCell;

use flatwater_index::Row;
use flatwater_index::codes::{Query, candidates8};
use flatwater_index::distance::kernels;
use flatwater_index::flat;
use flatwater_index::hnsw::{Scratch, Walk};
use flatwater_index::topk::TopK;

use crate::error::SegmentError;
use crate::ids::PointId;
use crate::mask::Mask;
use crate::parts::column::VectorColumn;
use crate::parts::graph::Graph;
use crate::parts::space::{CodeScorer, OriginalScorer};
use crate::rows::Rows;
use crate::view::SegmentView;
use plan::{Facts, Path};

/// A search on one segment.
#[derive(Debug)]
pub struct SegmentSearch<'a> {
    /// Place of the vector in the segment's spec.
    pub column: usize,
    /// Query in stored form (normalised for cosine), of the vector's dimensions.
    pub vector: &'a [f32],
    /// Rows wanted; any `usize`.
    pub k: usize,
    /// Beam width of the walk; raised to `k`.
    pub ef: usize,
    /// Compare with the original of every row.
    pub exact: bool,
    /// Rows that count, if not all.
    pub mask: Option<&'a Mask<'a>>,
}

/// A row that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Exact score, larger is better.
    pub score: f32,
    /// Its point.
    pub id: PointId,
    /// The row.
    pub row: Row,
}

thread_local! {
    /// Visited set and heaps of the walks of this thread.
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// The best `k` rows, best first, ties by id. With fewer than `k` matching rows all of them come.
///
/// # Errors
/// None today; the signature leaves room for payloads that do not check.
///
/// Blocks: never on locks; reads mapped files.
pub fn search_segment(
    view: &SegmentView,
    search: &SegmentSearch<'_>,
) -> Result<Vec<Hit>, SegmentError> {
    let Some(column) = view.segment().columns().get(search.column) else {
        return Ok(Vec::new());
    };
    if search.k == 0 || view.live_count() == 0 {
        return Ok(Vec::new());
    }
    let walk = Search {
        view,
        column,
        search,
        is_dense: column.is_dense(),
    };
    let hits = match walk.plan() {
        Path::Originals => walk.originals(),
        path => {
            let hits = walk.candidates(path);
            // A walk may end early in odd graphs or behind odd filters; a short answer is only
            // given where nothing more matches.
            if hits.len() < search.k && (hits.len() as u64) < walk.matching_bound() {
                walk.originals()
            } else {
                hits
            }
        }
    };
    Ok(hits)
}

/// One search at work.
struct Search<'a> {
    view: &'a SegmentView,
    column: &'a VectorColumn,
    search: &'a SegmentSearch<'a>,
    /// Every row has the vector.
    is_dense: bool,
}

impl Search<'_> {
    fn plan(&self) -> Path {
        let mask = self.search.mask;
        plan::choose(&Facts {
            rows: self.view.rows_len(),
            covered: self.covered(),
            matching: mask.map(|mask| mask.estimate(plan::SAMPLE_ROWS).expected),
            undecided: mask.map_or(0, Mask::undecided),
            k: self.search.k,
            exact: self.search.exact,
        })
    }

    /// Rows that the graph covers, and that the view holds.
    fn covered(&self) -> Row {
        self.column.indexed_len().min(self.view.rows_len())
    }

    /// No more rows than this can be found; exact where there is neither a filter to be evaluated
    /// nor rows without the vector.
    fn matching_bound(&self) -> u64 {
        let live = self.view.live_count();
        match self.search.mask {
            Some(mask) if mask.is_exact() => {
                mask.candidates().filter(|&r| self.counts(r)).count() as u64
            }
            Some(mask) => mask.upper_count().min(live),
            None if self.is_dense => live,
            None => (0..self.view.rows_len())
                .filter(|&row| self.counts(row))
                .count() as u64,
        }
    }

    /// Whether a row is live and has the vector, whatever the filter says.
    #[inline]
    fn counts(&self, row: Row) -> bool {
        self.view.is_live(row) && (self.is_dense || self.column.has(row, self.view.watermark()))
    }

    #[inline]
    fn accepts(&self, row: Row) -> bool {
        self.counts(row) && self.search.mask.is_none_or(|mask| mask.accepts(row))
    }

    /// Exact scan of everything that matches.
    fn originals(&self) -> Vec<Hit> {
        let mut best = TopK::new(self.search.k);
        match self.search.mask {
            Some(mask) => self.score_originals(mask.candidates(), &mut best),
            None => self.score_originals(0..self.view.rows_len(), &mut best),
        }
        self.hits(best)
    }

    fn score_originals(&self, rows: impl Iterator<Item = Row>, best: &mut TopK<(PointId, Row)>) {
        let metric = self.column.spec().metric;
        let kernels = kernels();
        for row in rows.filter(|&row| self.accepts(row)) {
            let score = kernels.score(metric, self.search.vector, self.column.originals().row(row));
            best.push(score + 0.0, (self.view.segment().head(row).id, row));
        }
    }

    fn hits(&self, best: TopK<(PointId, Row)>) -> Vec<Hit> {
        let sorted = best.into_sorted_vec().into_iter();
        sorted
            .map(|(score, (id, row))| Hit { score, id, row })
            .collect()
    }

    /// Candidates of the graph and of the scans, scored again by their originals.
    fn candidates(&self, path: Path) -> Vec<Hit> {
        let rows = self.view.rows_len();
        let walked = if path == Path::Scan {
            0
        } else {
            self.covered()
        };
        let mut candidates: Vec<Row> = Vec::new();
        let mut best = TopK::new(self.search.k);
        match self
            .column
            .codes()
            .and_then(|codes| codes.ready().map(|ready| (codes, ready)))
        {
            Some((codes, (encoder, coded))) => {
                let coded = coded.min(rows);
                let query = Query::new(encoder, self.search.vector);
                if walked > 0
                    && let Some(graph) = self.column.graph()
                {
                    let found = match (graph, codes.codes8()) {
                        (Graph::Growing(graph), Rows::Growing(rows)) => {
                            let scorer = CodeScorer::new(&query, &**rows);
                            self.walk_graph(graph, &scorer, path, walked)
                        }
                        (Graph::Frozen(files), Rows::Sealed(rows)) => {
                            let scorer = CodeScorer::new(&query, rows);
                            self.walk_graph(&files.graph(), &scorer, path, walked)
                        }
                        // A segment is of one kind. Were it not, its originals would be compared.
                        _ => Vec::new(),
                    };
                    // The beam is wide to find its way; by their codes the best few hold the answer.
                    candidates.extend(found.into_iter().take(candidates8(self.search.k)));
                }
                candidates.extend(self.scan_codes(&query, codes.codes1(), walked, coded));
                self.score_originals(self.behind(coded), &mut best);
            }
            None => {
                if walked > 0
                    && let Some(graph) = self.column.graph()
                {
                    let (metric, vector) = (self.column.spec().metric, self.search.vector);
                    candidates.extend(match (graph, self.column.originals()) {
                        (Graph::Growing(graph), Rows::Growing(rows)) => {
                            let scorer = OriginalScorer::new(metric, vector, &**rows);
                            self.walk_graph(graph, &scorer, path, walked)
                        }
                        (Graph::Frozen(files), Rows::Sealed(rows)) => {
                            let scorer = OriginalScorer::new(metric, vector, rows);
                            self.walk_graph(&files.graph(), &scorer, path, walked)
                        }
                        _ => Vec::new(),
                    });
                }
                self.score_originals(self.behind(walked), &mut best);
            }
        }
        self.score_originals(candidates.into_iter(), &mut best);
        self.hits(best)
    }

    /// Rows of the view from `start` on that the filter may pass.
    fn behind(&self, start: Row) -> Box<dyn Iterator<Item = Row> + '_> {
        match self.search.mask {
            Some(mask) => Box::new(mask.candidates().skip_while(move |&row| row < start)),
            None => Box::new(start..self.view.rows_len()),
        }
    }

    fn walk_graph(
        &self,
        graph: &impl Walk,
        scorer: &impl flatwater_index::hnsw::Scorer,
        path: Path,
        covered: Row,
    ) -> Vec<Row> {
        let ef = self.search.ef.max(self.search.k);
        let ef = plan::beam(ef, self.column.spec().metric).min(covered as usize);
        let accept = |row: Row| row < covered && self.accepts(row);
        let found = SCRATCH.with_borrow_mut(|scratch| match (path, self.search.mask) {
            (Path::FilteredWalk, Some(mask)) => {
                let matches = |row: Row| row < covered && mask.may_accept(row);
                graph.search_filtered(scorer, ef, &matches, &accept, scratch)
            }
            _ => graph.search(scorer, ef, &accept, scratch),
        });
        found.into_iter().map(|scored| scored.row).collect()
    }

    /// The best candidates among rows `from..to` by their 1-bit codes.
    fn scan_codes(&self, query: &Query, codes1: &Rows<u8>, from: Row, to: Row) -> Vec<Row> {
        let mut best: TopK<Row> =
            TopK::new(plan::scan_candidates(self.search.k, self.column.spec().dim));
        match self.search.mask {
            Some(mask) if plan::is_sparse(mask.upper_count(), self.view.rows_len()) => {
                for row in mask
                    .candidates()
                    .skip_while(|&r| r < from)
                    .take_while(|&r| r < to)
                {
                    if self.accepts(row) {
                        best.push(query.score1(codes1.row(row)), row);
                    }
                }
            }
            _ => {
                let mut row = from;
                while row < to {
                    let (records, rows) = codes1.run(row);
                    let rows = rows.min(to - row);
                    if rows == 0 {
                        break;
                    }
                    let records = &records[..rows as usize * query.stride1()];
                    flat::scan1(query, records, row, |row| self.accepts(row), &mut best);
                    row += rows;
                }
            }
        }
        best.into_sorted_vec()
            .into_iter()
            .map(|(_, row)| row)
            .collect()
    }
}
