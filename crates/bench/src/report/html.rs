//! `report.html`: one page that needs nothing but itself.

use serde_json::Value;

use super::chart::{self, Band, Line, LineChart, Row, Scale, escaped, number};
use super::text::{list, title};

const STYLE: &str = include_str!("report.css");

/// Percentiles in tables and charts.
const SHOWN: [&str; 4] = ["p50", "p95", "p99", "max"];

/// The page of a run and its series.
pub(super) fn page(run: &Value, series: &[Value]) -> String {
    let study = run["study"].as_str().unwrap_or("run");
    let trials = list(&run["trials"]);
    let mut body = head(run, study);
    body += &summary(trials);
    body += &match study {
        "merge" => ladder(trials),
        _ => overview(trials),
    };
    for (trial, series) in trials.iter().zip(series) {
        body += &of_trial(trial, series);
    }
    format!(
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>\
         <meta name='viewport' content='width=device-width,initial-scale=1'>\
         <title>flatwater-bench {0}</title><style>{STYLE}</style></head>\
         <body><main>{body}</main></body></html>",
        escaped(study)
    )
}

fn head(run: &Value, study: &str) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let (target, data, machine) = (&run["target"], &run["data"], &run["machine"]);
    let facts = [
        (
            "target",
            format!(
                "{}, {} ({})",
                word(&target["version"]),
                word(&target["kind"]),
                word(&target["place"])
            ),
        ),
        (
            "data",
            format!(
                "{}: {} rows of {} dims, {}, {} queries",
                word(&data["name"]),
                word(&data["rows"]),
                word(&data["dim"]),
                word(&data["metric"]),
                word(&data["queries"])
            ),
        ),
        (
            "machine",
            format!(
                "{}, {} cores, {} MB, Linux {}, load {} at the start",
                word(&machine["processor"]),
                word(&machine["cores"]),
                word(&machine["memory_mb"]),
                word(&machine["kernel"]),
                word(&machine["load"])
            ),
        ),
        (
            "run",
            format!(
                "{} to {}, commit {}, seed {}",
                word(&run["started"]),
                word(&run["ended"]),
                word(&run["commit"]),
                word(&run["seed"])
            ),
        ),
        (
            "harness",
            format!(
                "{}, its loop takes {} us a call",
                word(&run["harness"]["version"]),
                word(&run["harness"]["overhead_us"])
            ),
        ),
    ];
    let rows: String = facts
        .iter()
        .map(|(name, fact)| format!("<dt>{name}</dt><dd>{}</dd>", escaped(fact)))
        .collect();
    let mut warnings = Vec::new();
    if run["interrupted"] == true {
        warnings.push("This run was interrupted; it shows what was measured until then.");
    }
    if run["harness"]["is_optimised"] == false {
        warnings.push("The harness was built without optimisation: its times say nothing.");
    }
    let warnings: String = warnings
        .iter()
        .map(|text| format!("<p class='warn'>{text}</p>"))
        .collect();
    format!("<h1>{}</h1><dl>{rows}</dl>{warnings}", escaped(study))
}

/// A line for each phase of each trial.
fn summary(trials: &[Value]) -> String {
    let mut rows = String::new();
    for trial in trials {
        for phase in list(&trial["phases"]) {
            let ms = |value: &Value| value.as_f64().map_or(String::new(), number);
            let cells: String = SHOWN
                .iter()
                .map(|share| format!("<td>{}</td>", ms(&phase["latency_ms"][*share])))
                .collect();
            let by_time = format!(
                "<td>{}</td><td>{}</td>",
                ms(&phase["latency_by_time_ms"]["p50"]),
                ms(&phase["latency_by_time_ms"]["p95"])
            );
            let bad: u64 = ["timed_out", "failed", "unsent"]
                .iter()
                .filter_map(|k| phase[*k].as_u64())
                .sum();
            let counts = match phase["counts"].as_bool() {
                Some(false) => " <b title='see below'>(does not count)</b>",
                _ => "",
            };
            rows += &format!(
                "<tr><th>{}</th><td>{}{counts}</td><td>{}</td><td>{}</td>{cells}{by_time}<td>{bad}</td><td>{}</td><td>{}</td></tr>",
                escaped(&title(trial)),
                escaped(phase["name"].as_str().unwrap_or_default()),
                ms(&phase["seconds"]),
                ms(&phase["calls"]),
                ms(&phase["recall"]),
                ms(&phase["server"]["cpu_s"]),
            );
        }
        if let Some(reason) = trial["not_run"].as_str().or(trial["failed"].as_str()) {
            rows += &format!(
                "<tr><th>{}</th><td colspan='11'>not run: {}</td></tr>",
                escaped(&title(trial)),
                escaped(reason)
            );
        }
    }
    format!(
        "<h2>All phases</h2><div class='wide'><table><tr><th></th><th>phase</th><th>s</th><th>calls</th>\
         <th>p50 ms</th><th>p95</th><th>p99</th><th>max</th><th>p50 by time</th><th>p95 by time</th>\
         <th>without answer</th><th>recall</th><th>CPU s</th></tr>{rows}</table></div>"
    )
}

/// Percentiles of the phases, and the lengths of the drains.
fn overview(trials: &[Value]) -> String {
    let rows_of = |wanted: &dyn Fn(&str) -> bool, row: &dyn Fn(&Value) -> Row| -> Vec<Row> {
        let phases = trials.iter().flat_map(|trial| {
            list(&trial["phases"])
                .iter()
                .map(move |phase| (trial, phase))
        });
        phases
            .filter(|(_, phase)| wanted(phase["name"].as_str().unwrap_or_default()))
            .map(|(trial, phase)| Row {
                name: format!(
                    "{} - {}",
                    title(trial),
                    phase["name"].as_str().unwrap_or_default()
                ),
                ..row(phase)
            })
            .collect()
    };
    let percentiles = |phase: &Value| Row {
        name: String::new(),
        values: SHOWN
            .iter()
            .filter_map(|share| phase["latency_ms"][*share].as_f64())
            .collect(),
        note: String::new(),
    };
    let is_search = |name: &str| !["upload", "deletion", "cleaning up"].contains(&name);
    let mut body = String::new();
    let rows = rows_of(&is_search, &percentiles);
    if !rows.is_empty() {
        body += &figure(
            "Latency of searches by phase",
            &chart::dots(&rows, &SHOWN, "ms"),
        );
    }
    let length = |phase: &Value| Row {
        name: String::new(),
        values: phase["seconds"].as_f64().into_iter().collect(),
        note: match phase["counts"].as_bool() {
            Some(false) => String::from("s (does not count)"),
            _ => String::from("s"),
        },
    };
    let rows = rows_of(
        &|name| ["draining", "late indexing"].contains(&name),
        &length,
    );
    if !rows.is_empty() {
        body += &figure(
            "Time until the optimizers were idle",
            &chart::bars(&rows, "s"),
        );
    }
    let recall = |phase: &Value| Row {
        name: String::new(),
        values: phase["recall"].as_f64().into_iter().collect(),
        note: String::new(),
    };
    let mut rows = rows_of(&is_search, &recall);
    rows.retain(|row| !row.values.is_empty());
    if !rows.is_empty() {
        body += &figure("Recall by phase", &chart::bars(&rows, "recall"));
    }
    body
}

/// Searches a second and latency against the number of clients.
fn ladder(trials: &[Value]) -> String {
    let mut body = String::new();
    for (name, scale, of) in LADDER_CHARTS {
        let mut lines = Vec::new();
        for trial in trials {
            for side in ["before", "after"] {
                let steps = list(&trial["phases"])
                    .iter()
                    .filter(|phase| phase["side"] == side);
                let point = |phase: &Value| Some((phase["clients"].as_f64()?, of(phase)?));
                let points: Vec<_> = steps.filter_map(point).collect();
                if !points.is_empty() {
                    lines.push(Line {
                        name: format!("{} {side} the merge", title(trial)),
                        points,
                    });
                }
            }
        }
        let chart = LineChart {
            x: "clients",
            y: name,
            scale,
            lines,
            bands: Vec::new(),
            jobs: Vec::new(),
        };
        body += &figure(name, &chart::lines(&chart));
    }
    body
}

type OfPhase = fn(&Value) -> Option<f64>;
const LADDER_CHARTS: [(&str, Scale, OfPhase); 3] = [
    ("Searches a second", Scale::Linear, |phase| {
        phase["calls_per_s"].as_f64()
    }),
    ("p99, ms", Scale::Linear, |phase| {
        phase["latency_ms"]["p99"].as_f64()
    }),
    ("Recall", Scale::Share, |phase| phase["recall"].as_f64()),
];

fn of_trial(trial: &Value, series: &Value) -> String {
    let name = escaped(&title(trial));
    let mut body = format!("<h2>{name}</h2>");
    for phase in list(&trial["phases"]) {
        for why in list(&phase["why_not"]) {
            let phase = escaped(phase["name"].as_str().unwrap_or_default());
            body += &format!(
                "<p class='warn'>{phase} does not count: {}</p>",
                escaped(why.as_str().unwrap_or_default())
            );
        }
    }
    for doubt in list(&trial["doubts"]) {
        body += &format!(
            "<p class='warn'>{}</p>",
            escaped(doubt.as_str().unwrap_or_default())
        );
    }
    let fresh = &trial["freshness"];
    if let (Some(markers), Some(found)) =
        (fresh["markers"].as_u64(), fresh["found_at_once"].as_u64())
    {
        body += &format!(
            "<p>{found} of {markers} markers were found by the first search after their acknowledgement.</p>"
        );
    }
    let (bands, jobs) = (bands(trial), jobs(series));
    let chart = |x, y, scale, lines: Vec<Line>, jobs: &[Band]| {
        let lines: Vec<Line> = lines
            .into_iter()
            .filter(|line| !line.points.is_empty())
            .collect();
        if lines.is_empty() {
            return String::new();
        }
        chart::lines(&LineChart {
            x,
            y,
            scale,
            lines,
            bands: bands.clone(),
            jobs: jobs.to_vec(),
        })
    };
    let seconds = list(&series["seconds"]);
    let latency = ["p50", "p95", "max"].map(|key| line(key, seconds, key));
    body += &figure(
        "Latency of each second, ms (bars: optimizer jobs)",
        &chart("s", "ms", Scale::Log, latency.to_vec(), &jobs),
    );
    let recall = vec![line("recall", list(&series["recall"]), "recall")];
    body += &figure(
        "Recall, over the points acknowledged at each moment",
        &chart("s", "recall", Scale::Share, recall, &[]),
    );
    let moments = list(&series["moments"]);
    let points = vec![
        line("points", moments, "points"),
        line("in a graph", moments, "indexed"),
        line("in queued jobs", moments, "queued_points"),
    ];
    body += &figure(
        "Points and backlog",
        &chart("s", "points", Scale::Linear, points, &jobs),
    );
    let segments = vec![
        line("segments", moments, "segments"),
        line("running jobs", moments, "running"),
    ];
    body += &figure(
        "Segments",
        &chart("s", "segments", Scale::Linear, segments, &[]),
    );
    let cpu = Line {
        name: String::from("cores in use by the server"),
        points: slope(moments, "cpu_s"),
    };
    body += &figure(
        "Processor",
        &chart("s", "cores", Scale::Linear, vec![cpu], &jobs),
    );
    let memory = vec![
        line("resident MB", moments, "resident_mb"),
        line("written MB", moments, "written_mb"),
    ];
    body += &figure(
        "Memory and bytes written",
        &chart("s", "MB", Scale::Linear, memory, &[]),
    );
    format!(
        "<details{}><summary>{name}</summary>{body}</details>",
        " open"
    )
}

fn figure(title: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!(
        "<figure><figcaption>{}</figcaption>{content}</figure>",
        escaped(title)
    )
}

fn line(name: &str, rows: &[Value], key: &str) -> Line {
    let point = |row: &Value| Some((row["t"].as_f64()?, row[key].as_f64()?));
    Line {
        name: name.to_owned(),
        points: rows.iter().filter_map(point).collect(),
    }
}

/// How fast a counter goes up.
fn slope(rows: &[Value], key: &str) -> Vec<(f64, f64)> {
    let point = |pair: &[Value]| {
        let (from, to) = (pair[0]["t"].as_f64()?, pair[1]["t"].as_f64()?);
        let rise = pair[1][key].as_f64()? - pair[0][key].as_f64()?;
        (to > from).then(|| (to, rise / (to - from)))
    };
    rows.windows(2).filter_map(point).collect()
}

fn bands(trial: &Value) -> Vec<Band> {
    let band = |phase: &Value| {
        Some(Band {
            name: phase["name"].as_str()?.to_owned(),
            from: phase["from"].as_f64()?,
            to: phase["to"].as_f64()?,
        })
    };
    list(&trial["phases"]).iter().filter_map(band).collect()
}

fn jobs(series: &Value) -> Vec<Band> {
    let job = |job: &Value| {
        let points = job["points"].as_f64().unwrap_or(0.0);
        Some(Band {
            name: format!(
                "{} of {} points",
                job["optimizer"].as_str()?,
                number(points)
            ),
            from: job["from"].as_f64()?,
            to: job["to"].as_f64()?,
        })
    };
    list(&series["jobs"]).iter().filter_map(job).collect()
}
