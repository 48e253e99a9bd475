//! `gate`: passes or fails a run by ratios.
//!
//! `gate RUN BASE` compares the same figures of two runs; `gate RUN --to steady` compares figures of a
//! run with the same figure of another phase of the same trial, which is what "as fast as at rest" says.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use super::chart::number;
use super::figures::{Better, Figures, KINDS, Place, median, of, worse_by};
use super::run;
use crate::options::{Flag, Given, flag};

/// Options of the gate.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    flag("--figures", "LIST", "draining.p50,draining.p95,steady.p50,steady.p95,steady.recall", "PHASE.FIGURE, one after another"),
    flag("--worse", "X", "1.1", "largest ratio that passes, 1.1 is a tenth worse"),
    flag("--to", "PHASE", "", "compare with this phase of the same trial instead of with BASE"),
];

/// Fails if a ratio is worse than asked, or if there is nothing to compare.
#[allow(clippy::print_stdout, reason = "a report is what this program is for")]
pub(crate) fn check(given: &Given) -> Result<(), Box<dyn Error>> {
    let read = |folder: &String| run::read(Path::new(folder));
    let worst = given.real("--worse")?;
    let wanted = wanted(&given.list("--figures"))?;
    let (text, is_passed) = match (&given.words[..], given.optional("--to")) {
        ([run, base], None) => {
            let (run, base) = (of(&read(run)?), of(&read(base)?));
            judge(&run, &wanted, worst, |key| base.get(key).cloned())
        }
        ([run], Some(phase)) => {
            let run = of(&read(run)?);
            judge(&run, &wanted, worst, |(place, kind)| {
                let phase = phase.to_owned();
                let trial = place.trial.clone();
                run.get(&(Place { trial, phase }, kind)).cloned()
            })
        }
        _ => return Err("gate RUN BASE, or gate RUN --to PHASE".into()),
    };
    println!("{text}");
    match is_passed {
        true => Ok(()),
        false => Err("the gate is shut".into()),
    }
}

/// `phase.figure` of the command line.
struct Wanted {
    phase: String,
    kind: &'static str,
    better: Better,
}

fn wanted(names: &[String]) -> Result<Vec<Wanted>, Box<dyn Error>> {
    let one = |name: &String| {
        let (phase, figure) = name.rsplit_once('.').unwrap_or((name, ""));
        let kind = KINDS.iter().find(|kind| kind.name == figure);
        let known = || {
            KINDS
                .iter()
                .map(|kind| kind.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let kind =
            kind.ok_or_else(|| format!("`{name}` is no PHASE.FIGURE; figures are {}", known()))?;
        Ok(Wanted {
            phase: phase.to_owned(),
            kind: kind.name,
            better: kind.better,
        })
    };
    names.iter().map(one).collect()
}

/// A line for each ratio, and whether all pass.
fn judge(
    run: &Figures,
    wanted: &[Wanted],
    worst: f64,
    base: impl Fn(&(Place, &'static str)) -> Option<Vec<f64>>,
) -> (String, bool) {
    let (mut text, mut is_passed) = (String::new(), true);
    for wanted in wanted {
        let of_it =
            |key: &&(Place, &'static str)| key.0.phase == wanted.phase && key.1 == wanted.kind;
        let mut compared = 0;
        for key in run.keys().filter(of_it) {
            let Some(base) = base(key).map(|base| median(&base)) else {
                continue;
            };
            let value = run.get(key).map_or(0.0, |values| median(values));
            let ratio = worse_by(wanted.better, value, base);
            // A ratio of nothing to nothing is no number, and no reason to pass.
            let passes = ratio <= worst;
            let word = if passes { "pass" } else { "FAIL" };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{word}  {} {}.{}: {} against {}, {} times worse, at most {worst}",
                key.0.trial,
                wanted.phase,
                wanted.kind,
                number(value),
                number(base),
                number(ratio)
            );
            is_passed &= passes;
            compared += 1;
        }
        if compared == 0 {
            let _ = writeln!(
                text,
                "FAIL  {}.{}: nothing to compare",
                wanted.phase, wanted.kind
            );
            is_passed = false;
        }
    }
    (text, is_passed)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn is_passed(run: &Value, base: &Value, figures: &[&str], worst: f64) -> bool {
        let names: Vec<String> = figures.iter().map(|name| (*name).to_owned()).collect();
        let base = of(base);
        let wanted = wanted(&names).unwrap();
        judge(&of(run), &wanted, worst, |key| base.get(key).cloned()).1
    }

    fn run(draining: f64, steady: f64, recall: f64) -> Value {
        json!({ "format": 1, "trials": [{ "configuration": "A1", "phases": [
            { "name": "draining", "calls": 9, "latency_ms": { "p95": draining } },
            { "name": "steady", "calls": 9, "latency_ms": { "p95": steady }, "recall": recall },
        ]}]})
    }

    #[test]
    fn a_figure_that_is_worse_than_asked_shuts_the_gate() {
        let base = run(10.0, 5.0, 0.98);
        let figures = ["draining.p95", "steady.recall"];
        assert!(is_passed(&run(10.9, 50.0, 0.98), &base, &figures, 1.1));
        assert!(is_passed(&run(1.0, 5.0, 1.0), &base, &figures, 1.1));
        assert!(!is_passed(&run(11.1, 5.0, 0.98), &base, &figures, 1.1));
        assert!(!is_passed(&run(10.0, 5.0, 0.80), &base, &figures, 1.1));
    }

    #[test]
    fn nothing_to_compare_shuts_the_gate() {
        let base = run(10.0, 5.0, 0.98);
        assert!(!is_passed(&base, &base, &["churn.p95"], 9.0));
        assert!(!is_passed(
            &base,
            &json!({ "trials": [] }),
            &["steady.p95"],
            9.0
        ));
        assert!(wanted(&[String::from("steady.colour")]).is_err());
    }

    #[test]
    fn a_phase_is_held_against_another_of_its_trial() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        std::fs::write(&path, run(6.0, 5.0, 1.0).to_string()).unwrap();
        let path = path.to_str().unwrap();
        let check = |worse: &str| {
            let words = [
                path,
                "--to",
                "steady",
                "--figures",
                "draining.p95",
                "--worse",
                worse,
            ];
            check(&Given::parse(&[FLAGS], &words).unwrap())
        };
        assert!(check("1.25").is_ok());
        assert!(check("1.15").is_err());
    }
}
