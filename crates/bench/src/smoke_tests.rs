//! Each study once, from the command line's words to the page, on few rows in the engine embedded.
//! No time is judged: a machine that tests run on is never quiet.

use std::path::Path;

use serde_json::Value;

use crate::commands;

const DATA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/data/wordnet-minilm-384"
);

/// Runs a study and returns its run.json.
fn study(folder: &Path, name: &str, words: &[&str]) -> Value {
    let out = folder.join(name);
    let cache = folder.join("cache");
    let out_text = out.to_str().unwrap();
    let mut all = vec![
        "--data",
        DATA,
        "--queries",
        "50",
        "--progress",
        "no",
        "--poll-ms",
        "20",
        "--out",
        out_text,
        "--cache",
        cache.to_str().unwrap(),
        "--commit",
        "abc",
    ];
    all.extend(words);
    commands::run(name, &all).unwrap();
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<svg") && page.ends_with("</html>"));
    // Nothing is fetched from anywhere.
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"));
    assert!(!page.contains("NaN"), "{name}");
    crate::report::run::read(&out).unwrap()
}

fn phase<'a>(trial: &'a Value, name: &str) -> &'a Value {
    let phases = trial["phases"].as_array().unwrap();
    let found = phases.iter().find(|phase| phase["name"] == name);
    found.unwrap_or_else(|| panic!("no phase {name} in {trial}"))
}

fn recall(phase: &Value) -> f64 {
    phase["recall"]
        .as_f64()
        .unwrap_or_else(|| panic!("no recall in {phase}"))
}

/// Indexing gives way to whatever else the machine does: a test does not wait for its end.
const SHORT: [&str; 14] = [
    "--rows",
    "1500",
    "--clients",
    "4",
    "--passes",
    "1",
    "--indexing-threshold-kb",
    "500",
    "--freshness-ms",
    "200",
    "--checkpoint-queries",
    "5",
    "--drain-max-s",
    "8",
];

/// Facts of the optimizers at the end of a drain that came to its end.
fn at_end(drain: &Value) -> Option<&Value> {
    (drain["is_finished"] == true).then(|| &drain["at_end"])
}

#[test]
fn the_optimizer_study_runs_its_phases_and_says_that_a_short_drain_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        "--configurations",
        "A1",
        "--loops",
        "closed,open",
        "--rate",
        "200",
        "--hold",
        "yes",
    ];
    let run = study(folder.path(), "optimizers", &[&words[..], &SHORT].concat());
    let trials = run["trials"].as_array().unwrap();
    let loops: Vec<_> = trials.iter().map(|t| t["loop"].as_str().unwrap()).collect();
    assert_eq!(loops, ["closed", "open"]);
    for trial in trials {
        assert!(
            trial["failed"].is_null() && trial["not_run"].is_null(),
            "{trial}"
        );
        let draining = phase(trial, "draining");
        // It ended long before 20 s, by itself or because it was told to.
        assert_eq!(draining["counts"], false, "{draining}");
        assert!(
            draining["unindexed_share"].as_f64().unwrap() > 0.9,
            "{draining}"
        );
        assert!(draining["calls"].as_u64().unwrap() > 0 && recall(draining) > 0.9);
        if let Some(end) = at_end(draining) {
            assert!(end["indexed"].as_u64().unwrap() > 1_400, "{draining}");
        }
        let steady = phase(trial, "steady");
        assert_eq!(
            (&steady["calls"], &steady["failed"]),
            (&50.into(), &0.into())
        );
        assert!(recall(steady) > 0.9);
        let fresh = &trial["freshness"];
        assert!(fresh["markers"].as_u64().unwrap() >= 1);
        assert_eq!(fresh["markers"], fresh["found_at_once"], "{fresh}");
    }
    let out = folder.path().join("optimizers");
    let series = std::fs::read(out.join("series.json")).unwrap();
    let series: Value = serde_json::from_slice(&series).unwrap();
    let points = series[0]["recall"].as_array().unwrap().iter();
    let checkpoints = points.filter(|point| point["phase"] == "upload");
    let cuts: Vec<u64> = checkpoints
        .map(|c| c["acknowledged"].as_u64().unwrap())
        .collect();
    assert_eq!(cuts, [500, 1000]);
    let log = std::fs::read_to_string(out.join("00-a1-closed.hlog")).unwrap();
    assert!(log.contains("Tag=draining") && log.contains("Tag=steady"));
}

#[test]
fn the_optimizer_study_deletes_a_quarter_and_switches_the_indexing_on_late() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--configurations", "D1,E1", "--loops", "closed"];
    let run = study(folder.path(), "optimizers", &[&words[..], &SHORT].concat());
    // The right answers are those over the rest.
    let churn = phase(&run["trials"][0], "churn");
    assert!(recall(churn) > 0.9, "{churn}");
    assert!(
        churn["at_end"]["points"].as_u64().unwrap() < 1_500,
        "{churn}"
    );
    let late = phase(&run["trials"][1], "late indexing");
    assert_eq!(late["at_start"]["indexed"], 0, "{late}");
    if let Some(end) = at_end(late) {
        assert!(end["indexed"].as_u64().unwrap() > 1_400, "{late}");
    }
    assert!(recall(phase(&run["trials"][1], "steady after it")) > 0.9);
}

#[test]
fn the_contention_study_counts_slow_requests_beside_writes() {
    let folder = tempfile::tempdir().unwrap();
    let run = study(
        folder.path(),
        "contention",
        &[
            "--rows",
            "3000",
            "--seconds",
            "1",
            "--capacity-s",
            "0.5",
            "--clients",
            "4",
            "--keywords",
            "20",
            "--hnsw-m",
            "16",
            "--shards",
            "3",
            "--slow-ms",
            "0.001",
            "--search-rate",
            "100",
        ],
    );
    let trial = &run["trials"][0];
    assert!(trial["failed"].is_null(), "{trial}");
    assert_eq!(
        trial["not_run_options"][0],
        "--shards 3 was asked for and not run"
    );
    for name in [
        "searches alone",
        "searches beside writes",
        "writes beside searches",
    ] {
        let phase = phase(trial, name);
        // Everything is slower than a microsecond.
        assert_eq!(phase["slow"]["count"], phase["calls"], "{phase}");
        assert!(phase["calls"].as_u64().unwrap() > 0 && phase["rate"].as_f64().unwrap() >= 1.0);
    }
    // A second at 100/s; what is due in the last moment may fall on either side of it.
    let calls = phase(trial, "searches alone")["calls"].as_u64().unwrap();
    assert!((90..=130).contains(&calls), "{calls} searches");
    assert!(recall(phase(trial, "at rest")) > 0.9);
}

#[test]
fn the_merge_study_climbs_its_ladder_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        "--rows",
        "3000",
        "--ladder",
        "1,3",
        "--seconds",
        "0.2",
        "--segments-before",
        "3",
        "--repeat",
        "2",
    ];
    let run = study(folder.path(), "merge", &words);
    let trials = run["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    let ladder: Vec<_> = trials[1]["phases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|phase| !phase["side"].is_null())
        .collect();
    let steps: Vec<_> = ladder
        .iter()
        .map(|p| (p["side"].as_str().unwrap(), p["clients"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        steps,
        [("before", 1), ("before", 3), ("after", 1), ("after", 3)]
    );
    assert!(
        ladder
            .iter()
            .all(|step| recall(step) > 0.9 && step["calls"].as_u64() >= step["clients"].as_u64())
    );
    assert!(phase(&trials[0], "merge")["server"]["cpu_s"].is_number());
    // A run is as good as itself, and its two repeats are compared as one.
    let path = folder.path().join("merge");
    let path = path.to_str().unwrap();
    commands::run("compare", &[path, path]).unwrap();
    let words = [
        path,
        path,
        "--figures",
        "upload.p50,merge.seconds",
        "--worse",
        "1",
    ];
    commands::run("gate", &words).unwrap();
}

#[test]
fn what_cannot_be_opened_is_refused_with_its_name() {
    for (words, fault) in [
        (&[][..], "--data is needed"),
        (&["--data", "/nowhere/at/all.fbin"], "/nowhere/at/all.fbin"),
        (
            &["--data", DATA, "--target", "https://db"],
            "https is not spoken",
        ),
        (
            &["--data", DATA, "--configurations", "Z1"],
            "no configuration `Z1`",
        ),
        (&["--data", DATA, "--metric", "taxi"], "--metric is `taxi`"),
        (&["--data", DATA, "--rows", "0"], "--rows is 0"),
    ] {
        let error = commands::run("optimizers", words).unwrap_err().to_string();
        assert!(error.contains(fault), "{error}");
    }
}
