//! `flatwater-bench peers`: the index beside hnswlib and usearch, on the same rows and queries.
//!
//! 1. Exact answers are computed once and kept (`truth`).
//! 2. **Speed**: in each repeat every side builds anew, then for each search width every side
//!    searches all queries on one thread. What else the machine does thus falls on all alike; a
//!    figure is the median of the repeats, a ratio the median of the ratios within a repeat.
//! 3. Searches a second at a given recall come from the line between two rungs (`ladder`).
//! 4. **Recall**: once, on rows that are harder for codes (`case`).
//! 5. A table on standard output; figures with machine and commit as JSON (`report`).
//!
//! `flatwater` is this side (with `rows`, what its graph compares), `library` a peer.

mod case;
mod flatwater;
mod ladder;
mod library;
mod options;
mod participant;
mod report;
mod rows;
mod timing;
mod truth;

use std::error::Error;
use std::fs;
use std::path::Path;

use flatwater_index::Metric;

use case::{Case, Kind, RECALL_CASES};
use flatwater::Flatwater;
use ladder::recall;
use library::Library;
use options::Parts;
pub(crate) use options::{Options, USAGE};
use participant::Participant;
use report::{Outcome, Report, Run, Step};

/// Search widths at which recall alone is compared.
const RECALL_WIDTHS: [usize; 2] = [64, 128];

/// Runs what the options ask for.
#[allow(clippy::print_stdout, reason = "a report is what this program is for")]
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(&options.cache)?;
    let mut report = Report::new(options);
    for set in &options.sets {
        let limits = (options.rows_max, options.queries_max);
        if options.parts != Parts::Recall {
            let case = Case::load(&options.data, set, Kind::Plain, Metric::Cosine, limits)?;
            let outcome = compare(&case, options, options.repeats, &options.ladder)?;
            println!("{}", outcome.speed_table());
            report.speed.push(outcome);
            report.keep(options)?;
        }
        if options.parts != Parts::Speed {
            for (kind, metric) in RECALL_CASES {
                let case = Case::load(&options.data, set, kind, metric, limits)?;
                let outcome = compare(&case, options, 1, &RECALL_WIDTHS)?;
                println!("{}", outcome.recall_table());
                report.recall.push(outcome);
                report.keep(options)?;
            }
        }
    }
    Ok(())
}

/// Builds and searches of all sides on one case, in turns.
#[allow(
    clippy::print_stderr,
    reason = "progress of minutes, beside the report"
)]
fn compare(
    case: &Case,
    options: &Options,
    repeats: usize,
    ladder: &[usize],
) -> Result<Outcome, Box<dyn Error>> {
    let settings = &options.settings;
    let folder = options.cache.join(file_name(case));
    fs::create_dir_all(&folder)?;
    let truth = truth::of(
        case,
        settings.k,
        settings.threads,
        &folder.join("truth.u32"),
    )?;
    let mut sides = sides(case, options, &folder)?;
    let mut outcome = Outcome::new(case, sides.iter().map(|side| (side.name(), side.version())));
    for repeat in 0..repeats {
        for (side, outcome) in sides.iter_mut().zip(&mut outcome.sides) {
            let build = side.build()?;
            eprintln!(
                "{}: repeat {repeat}, {} built in {:.1} s",
                case.name,
                side.name(),
                build.wall
            );
            outcome.runs.push(Run {
                build,
                steps: Vec::new(),
            });
        }
        for &ef in ladder {
            for (side, outcome) in sides.iter_mut().zip(&mut outcome.sides) {
                let searched = side.search(ef)?;
                let step = Step {
                    ef,
                    recall: recall(&searched.found, &truth, settings.k),
                    seconds: searched.seconds,
                };
                if let Some(run) = outcome.runs.last_mut() {
                    run.steps.push(step);
                }
            }
        }
    }
    Ok(outcome)
}

fn sides<'a>(
    case: &'a Case,
    options: &'a Options,
    folder: &Path,
) -> Result<Vec<Box<dyn Participant + 'a>>, Box<dyn Error>> {
    let mut sides: Vec<Box<dyn Participant>> =
        vec![Box::new(Flatwater::new(case, &options.settings))];
    if let Some(python) = &options.python {
        for name in &options.peers {
            // usearch turns rows into bytes by their length: for other metrics it would need data
            // that fits its grid.
            if name == "usearch-i8" && case.metric != Metric::Cosine {
                continue;
            }
            sides.push(Box::new(Library::start(
                name,
                python,
                case,
                &options.settings,
                folder,
            )?));
        }
    }
    Ok(sides)
}

fn file_name(case: &Case) -> String {
    let rows = (case.row_count(), case.query_count());
    format!("{} {} {}", case.name, rows.0, rows.1).replace(' ', "-")
}
