//! `compare A B ...`: runs side by side, with the ratio of each to the first.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::chart::number;
use super::figures::{Figures, KINDS, Place, median, of, spread};
use super::run;

/// Prints the comparison of the runs in these folders.
#[allow(clippy::print_stdout, reason = "a report is what this program is for")]
pub(crate) fn print(folders: &[String]) -> Result<(), Box<dyn Error>> {
    if folders.len() < 2 {
        return Err("compare needs two runs or more: folders that have a run.json".into());
    }
    let runs = folders.iter().map(|folder| run::read(Path::new(folder)));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    println!("{}", table(folders, &runs));
    Ok(())
}

/// A table as Markdown has it.
fn table(names: &[String], runs: &[Value]) -> String {
    let mut text = notes(names, runs);
    let figures: Vec<Figures> = runs.iter().map(of).collect();
    let mut places: Vec<&Place> = figures
        .iter()
        .flat_map(|f| f.keys().map(|key| &key.0))
        .collect();
    places.sort_unstable();
    places.dedup();
    // Writing to a string cannot fail.
    let _ = write!(text, "| | |");
    for name in names {
        let _ = write!(text, " {name} |");
    }
    text.push_str("\n|---|---|");
    text.push_str(&"---|".repeat(names.len()));
    text.push('\n');
    for place in places {
        for kind in KINDS {
            let of_run = |figures: &'_ Figures| figures.get(&(place.clone(), kind.name)).cloned();
            let values: Vec<Option<Vec<f64>>> = figures.iter().map(of_run).collect();
            if values.iter().all(Option::is_none) {
                continue;
            }
            let base = values[0].as_deref().map(median);
            let cells: String = values
                .iter()
                .map(|values| format!(" {} |", cell(values.as_deref(), base)))
                .collect();
            let _ = writeln!(
                text,
                "| {} {} | {} |{cells}",
                place.trial, place.phase, kind.name
            );
        }
    }
    text
}

/// Median, ratio to the first run, and how far repeats lie apart.
fn cell(values: Option<&[f64]>, base: Option<f64>) -> String {
    let Some(values) = values else {
        return String::from("-");
    };
    let middle = median(values);
    let mut cell = number(middle);
    if let Some(base) = base.filter(|base| *base > 0.0 && *base != middle) {
        let _ = write!(cell, ", x{}", number(middle / base));
    }
    if let Some(spread) = spread(values) {
        let _ = write!(cell, " (of {}, spread x{})", values.len(), number(spread));
    }
    cell
}

/// What makes runs hard to compare.
fn notes(names: &[String], runs: &[Value]) -> String {
    let mut text = String::new();
    for (key, what) in [
        ("data", "data"),
        ("machine", "machine"),
        ("settings", "settings"),
    ] {
        let same = |run: &Value| match key {
            // Load differs from moment to moment, and folders from run to run.
            "machine" => run["machine"]["processor"] == runs[0]["machine"]["processor"],
            "settings" => ["--k", "--ef", "--passes", "--hold"]
                .iter()
                .all(|name| run["settings"][*name] == runs[0]["settings"][*name]),
            _ => run[key] == runs[0][key],
        };
        for (name, run) in names.iter().zip(runs) {
            if !same(run) {
                let _ = writeln!(text, "{name}: other {what} than {}\n", names[0]);
            }
        }
    }
    for (name, run) in names.iter().zip(runs) {
        if run["interrupted"] == true {
            let _ = writeln!(text, "{name} was interrupted\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(p95: &[f64]) -> Value {
        let trial = |(repeat, p95): (usize, &f64)| {
            json!({ "configuration": "A1", "loop": "closed", "repeat": repeat, "phases": [
                { "name": "draining", "seconds": 25.0, "calls": 10, "latency_ms": { "p95": p95 } },
                { "name": "steady", "seconds": 5.0, "calls": 10, "recall": 0.5 },
            ]})
        };
        json!({ "format": 1, "trials": p95.iter().enumerate().map(trial).collect::<Vec<_>>() })
    }

    #[test]
    fn runs_stand_side_by_side_with_ratio_and_spread() {
        let names = [String::from("a"), String::from("b")];
        let text = table(&names, &[run(&[10.0]), run(&[15.0, 30.0, 20.0])]);
        assert!(
            text.contains("| A1 closed draining | p95 | 10 | 20, x2 (of 3, spread x2) |"),
            "{text}"
        );
        assert!(
            text.contains("| A1 closed draining | seconds | 25 | 25 (of 3, spread x1) |"),
            "{text}"
        );
        assert!(
            text.contains("| A1 closed steady | recall | 0.5 |"),
            "{text}"
        );
        assert!(!text.contains("steady | seconds"), "{text}");
    }

    #[test]
    fn what_makes_runs_hard_to_compare_is_said_first() {
        let names = [String::from("a"), String::from("b")];
        let mut other = run(&[1.0]);
        other["data"] = json!({ "rows": 5 });
        other["interrupted"] = json!(true);
        let text = table(&names, &[run(&[1.0]), other]);
        assert!(text.starts_with("b: other data than a"), "{text}");
        assert!(text.contains("b was interrupted"), "{text}");
    }
}
