//! The outcome as a table and as JSON.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::case::Case;
use super::ladder::{Rung, median, rate_at};
use super::options::Options;
use super::timing::Seconds;

/// Recalls at which searches a second are compared.
const RECALLS: [f64; 3] = [0.95, 0.98, 0.99];

/// All cases of one call.
pub(super) struct Report {
    pub(super) speed: Vec<Outcome>,
    pub(super) recall: Vec<Outcome>,
    facts: Value,
}

/// One case, every side of it.
pub(super) struct Outcome {
    name: String,
    rows: usize,
    dim: usize,
    queries: usize,
    pub(super) sides: Vec<Side>,
}

pub(super) struct Side {
    name: String,
    version: String,
    /// One for each repeat.
    pub(super) runs: Vec<Run>,
}

pub(super) struct Run {
    pub(super) build: Seconds,
    pub(super) steps: Vec<Step>,
}

/// All queries at one search width.
pub(super) struct Step {
    pub(super) ef: usize,
    pub(super) recall: f64,
    pub(super) seconds: Seconds,
}

/// Which clock a figure goes by.
type Clock = fn(&Seconds) -> f64;
const CLOCKS: [(&str, Clock); 2] = [("wall", |s| s.wall), ("processor", |s| s.cpu)];

impl Side {
    /// A figure of every repeat.
    fn each(&self, figure: impl Fn(&Run) -> Option<f64>) -> Vec<Option<f64>> {
        self.runs.iter().map(figure).collect()
    }
}

impl Run {
    fn rate_at(&self, recall: f64, queries: usize, clock: Clock) -> Option<f64> {
        let rung = |step: &Step| Rung {
            ef: step.ef,
            recall: step.recall,
            rate: queries as f64 / clock(&step.seconds),
        };
        let rungs: Vec<Rung> = self.steps.iter().map(rung).collect();
        rate_at(&rungs, recall)
    }
}

impl Outcome {
    pub(super) fn new<'a>(case: &Case, sides: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let side = |(name, version): (&str, &str)| Side {
            name: String::from(name),
            version: String::from(version),
            runs: Vec::new(),
        };
        Self {
            name: case.name.clone(),
            rows: case.row_count(),
            dim: case.dim,
            queries: case.query_count(),
            sides: sides.map(side).collect(),
        }
    }

    /// Every compared figure: its name, and of each side the median and the median ratio to the
    /// peer that all are measured by (the first one after us), larger is better.
    fn figures(&self, clock: Clock) -> Vec<(String, Vec<Figure>)> {
        let mut figures = vec![(
            String::from("build, points/s"),
            self.compared(|run| Some(self.rows as f64 / clock(&run.build))),
        )];
        for recall in RECALLS {
            figures.push((
                format!("searches/s at recall {recall}"),
                self.compared(|run| run.rate_at(recall, self.queries, clock)),
            ));
        }
        figures
    }

    fn compared(&self, figure: impl Fn(&Run) -> Option<f64>) -> Vec<Figure> {
        let ours = self.sides.first().map(|side| side.each(&figure));
        let of_side = |side: &Side| {
            let values = side.each(&figure);
            let ratio = |(ours, theirs): (&Option<f64>, &Option<f64>)| Some((*ours)? / (*theirs)?);
            let pairs = ours.iter().flatten().zip(&values);
            Figure {
                median: median(values.iter().flatten().copied()),
                ours_against_it: median(pairs.filter_map(ratio)),
            }
        };
        self.sides.iter().map(of_side).collect()
    }

    fn step_medians(&self) -> Vec<(usize, Vec<(f64, f64)>)> {
        let widths = self.sides.first().and_then(|side| side.runs.first());
        let widths = widths.map_or(&[][..], |run| &run.steps);
        let at = |i: usize| {
            let of = |side: &Side, value: &dyn Fn(&Step) -> f64| {
                median(side.runs.iter().map(|run| value(&run.steps[i]))).unwrap_or(f64::NAN)
            };
            let rate = |step: &Step| self.queries as f64 / step.seconds.wall;
            let sides = self.sides.iter();
            sides
                .map(|side| (of(side, &|step| step.recall), of(side, &rate)))
                .collect()
        };
        widths
            .iter()
            .enumerate()
            .map(|(i, step)| (step.ef, at(i)))
            .collect()
    }

    /// Times and recalls for reading.
    pub(super) fn speed_table(&self) -> String {
        let mut text = self.heading();
        for (clock_name, clock) in CLOCKS {
            for (name, figures) in self.figures(clock) {
                let _ = write!(text, "\n{:42}", format!("{name} ({clock_name})"));
                for figure in figures {
                    let _ = write!(text, " {:>20}", figure.shown());
                }
            }
        }
        text + &self.ladder_lines()
    }

    /// Recalls for reading.
    pub(super) fn recall_table(&self) -> String {
        self.heading() + &self.ladder_lines()
    }

    fn heading(&self) -> String {
        let mut text = format!(
            "\n{}: {} rows of {} dims, {} queries; (ours / theirs)\n{:42}",
            self.name, self.rows, self.dim, self.queries, ""
        );
        for side in &self.sides {
            let _ = write!(text, " {:>20}", side.name);
        }
        text
    }

    fn ladder_lines(&self) -> String {
        let mut text = String::new();
        for (ef, sides) in self.step_medians() {
            let _ = write!(text, "\n{:42}", format!("ef {ef}: recall@10, searches/s"));
            for (recall, rate) in sides {
                let _ = write!(text, " {:>20}", format!("{recall:.4} {rate:7.0}"));
            }
        }
        text
    }

    fn json(&self) -> Value {
        let step = |step: &Step| {
            json!({"ef": step.ef, "recall": step.recall,
                   "wall_s": step.seconds.wall, "processor_s": step.seconds.cpu})
        };
        let run = |run: &Run| {
            json!({"build_wall_s": run.build.wall, "build_processor_s": run.build.cpu,
                   "ladder": run.steps.iter().map(step).collect::<Vec<_>>()})
        };
        let side = |side: &Side| {
            json!({"name": side.name, "version": side.version,
                   "repeats": side.runs.iter().map(run).collect::<Vec<_>>()})
        };
        let medians = CLOCKS.map(|(clock_name, clock)| {
            let named = self.figures(clock).into_iter().map(|(name, figures)| {
                let sides = self.sides.iter().zip(figures);
                let sides = sides.map(|(side, figure)| (side.name.clone(), figure.json()));
                (name, Value::Object(sides.collect()))
            });
            (String::from(clock_name), Value::Object(named.collect()))
        });
        json!({"case": self.name, "rows": self.rows, "dim": self.dim, "queries": self.queries,
               "medians": Value::Object(medians.into_iter().collect()),
               "sides": self.sides.iter().map(side).collect::<Vec<_>>()})
    }
}

/// A median, and the median of our figure over theirs.
struct Figure {
    median: Option<f64>,
    ours_against_it: Option<f64>,
}

impl Figure {
    fn shown(&self) -> String {
        match (self.median, self.ours_against_it) {
            (Some(median), Some(ratio)) => format!("{median:.0} ({ratio:.2}x)"),
            (Some(median), None) => format!("{median:.0}"),
            _ => String::from("-"),
        }
    }

    fn json(&self) -> Value {
        json!({"median": self.median, "flatwater_ratio": self.ours_against_it})
    }
}

impl Report {
    pub(super) fn new(options: &Options) -> Self {
        let settings = &options.settings;
        let facts = json!({
            "commit": options.commit,
            "machine": machine(),
            "load_at_start": fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
            "m": settings.m,
            "ef_construct": settings.ef_construct,
            "build_threads": settings.threads,
            "search_threads": 1,
            "k": settings.k,
            "repeats": options.repeats,
        });
        Self {
            speed: Vec::new(),
            recall: Vec::new(),
            facts,
        }
    }

    /// Writes what there is so far, where the options name a file: a run takes long.
    pub(super) fn keep(&self, options: &Options) -> Result<(), Box<dyn Error>> {
        match &options.out {
            Some(path) => Ok(fs::write(path, self.json()?)?),
            None => Ok(()),
        }
    }

    fn json(&self) -> Result<String, Box<dyn Error>> {
        let all = |outcomes: &[Outcome]| outcomes.iter().map(Outcome::json).collect::<Vec<_>>();
        let mut report = self.facts.clone();
        report["load_at_end"] = json!(
            fs::read_to_string("/proc/loadavg")
                .unwrap_or_default()
                .trim()
        );
        report["speed"] = json!(all(&self.speed));
        report["recall"] = json!(all(&self.recall));
        Ok(serde_json::to_string_pretty(&report)? + "\n")
    }
}

/// Processor, cores and kernel, as far as the system tells.
fn machine() -> Value {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(": ").nth(1))
            .map(String::from)
    };
    json!({
        "model": field("model name"),
        "cpu_family": field("cpu family"),
        "cpu_model": field("model\t"),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "kernels": flatwater_index::distance::kernels().name,
        "kernel_release": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, seconds: [f64; 3], search: [f64; 3]) -> Side {
        let run = |(build, search): (f64, f64)| Run {
            build: Seconds {
                wall: build,
                cpu: 1.0,
            },
            steps: [(16, 0.9, search), (64, 1.0, 2.0 * search)]
                .map(|(ef, recall, wall)| Step {
                    ef,
                    recall,
                    seconds: Seconds { wall, cpu: 1.0 },
                })
                .into(),
        };
        let runs = seconds.into_iter().zip(search).map(run).collect();
        Side {
            name: String::from(name),
            version: String::new(),
            runs,
        }
    }

    #[test]
    fn ratios_are_taken_within_a_repeat_and_then_their_median() {
        let outcome = Outcome {
            name: String::new(),
            rows: 100,
            dim: 4,
            queries: 10,
            // The second repeat ran while the machine was busy: twice the time for both.
            sides: vec![
                side("ours", [1.0, 2.0, 1.0], [0.1, 0.2, 0.1]),
                side("theirs", [2.0, 4.0, 2.2], [0.2, 0.4, 0.2]),
            ],
        };
        let figures = outcome.figures(|seconds| seconds.wall);
        let (_, build) = &figures[0];
        assert_eq!(build[0].median, Some(100.0));
        assert_eq!(build[1].ours_against_it, Some(2.0));
        let (_, at_95) = &figures[1];
        // Half way between 100 and 50 searches a second.
        assert!((at_95[0].median.unwrap() - 75.0).abs() < 1e-9);
        assert!((at_95[1].ours_against_it.unwrap() - 2.0).abs() < 1e-9);
    }
}
