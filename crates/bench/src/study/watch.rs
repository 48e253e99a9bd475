//! Looks at the collection, the server and the machine again and again, in a thread of its own.
//!
//! The optimizers are **idle** after three polls in a row that found nothing running and nothing
//! queued, as in the published study; the backlog was empty from the first of the three on.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::setup::Setup;
use crate::measure::reading::Reading;
use crate::target::{Failure, Target, Verb};

/// Polls in a row that must find nothing.
const IDLE_POLLS: usize = 3;

/// What the optimizers had to do at one poll.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Backlog {
    pub(crate) points: u64,
    pub(crate) indexed: u64,
    pub(crate) segments: u64,
    pub(crate) running: usize,
    pub(crate) queued: u64,
    pub(crate) queued_points: u64,
    pub(crate) status: String,
    /// Running jobs: id, optimizer, points.
    pub(crate) jobs: Vec<(String, String, u64)>,
}

impl Backlog {
    /// Asks the target.
    pub(crate) fn of(target: &dyn Target, collection: &str) -> Result<Self, Failure> {
        let info = target.manage(Verb::Get, &format!("/collections/{collection}"), None)?;
        let path = format!("/collections/{collection}/optimizations?with=queued");
        let work = target.manage(Verb::Get, &path, None)?;
        Ok(Self::read(&info, &work))
    }

    fn read(info: &Value, work: &Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let running = work["running"].as_array().map_or(&[][..], Vec::as_slice);
        let job = |job: &Value| {
            let word = |name: &str| job[name].as_str().unwrap_or("?").to_owned();
            let segments = job["segments"].as_array().map_or(&[][..], Vec::as_slice);
            let points = segments.iter().map(|s| number(&s["points_count"])).sum();
            (word("uuid"), word("optimizer"), points)
        };
        Self {
            points: number(&info["points_count"]),
            indexed: number(&info["indexed_vectors_count"]),
            segments: number(&info["segments_count"]),
            running: running.len(),
            queued: number(&work["summary"]["queued_optimizations"]),
            queued_points: number(&work["summary"]["queued_points"]),
            status: info["status"].as_str().unwrap_or("?").to_owned(),
            jobs: running.iter().map(job).collect(),
        }
    }

    /// Nothing runs and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.running == 0 && self.queued == 0
    }

    /// Share of the points that no graph holds.
    pub(crate) fn unindexed_share(&self) -> f64 {
        let points = self.points.max(1) as f64;
        1.0 - (self.indexed as f64 / points).min(1.0)
    }
}

/// One poll.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Duration,
    pub(crate) backlog: Option<Backlog>,
    pub(crate) reading: Reading,
}

/// When the work was seen to go on and to end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Idle {
    /// Beginning of the phase.
    from: Duration,
    quiet_polls: usize,
    /// Last poll that found work.
    pub(crate) last_busy: Option<Duration>,
    /// First of the polls in a row that found none.
    pub(crate) since: Option<Duration>,
}

impl Idle {
    fn saw(&mut self, at: Duration, is_idle: bool) {
        if at < self.from {
            // Begun before the phase: it says nothing about it.
            return;
        }
        if is_idle {
            self.quiet_polls += 1;
            self.since.get_or_insert(at);
        } else {
            *self = Self {
                from: self.from,
                last_busy: Some(at),
                ..Self::default()
            };
        }
    }

    /// Whether three polls in a row found nothing.
    pub(crate) fn is_certain(&self) -> bool {
        self.quiet_polls >= IDLE_POLLS
    }
}

/// The thread's findings.
#[derive(Debug)]
pub(crate) struct Watch {
    clock: Instant,
    process: Option<u32>,
    moments: Mutex<Vec<Moment>>,
    idle: Mutex<Idle>,
    is_over: AtomicBool,
}

impl Watch {
    /// Finds out about the process `process` and the machine.
    pub(crate) fn new(clock: Instant, process: Option<u32>) -> Self {
        Self {
            clock,
            process,
            moments: Mutex::default(),
            idle: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Polls until [`Watch::end`].
    pub(crate) fn run(&self, target: &dyn Target, collection: &str, every: Duration) {
        while !self.is_over.load(Ordering::Acquire) {
            let begun = Instant::now();
            self.poll(target, collection);
            std::thread::sleep(every.saturating_sub(begun.elapsed()));
        }
    }

    /// One poll, now.
    pub(crate) fn poll(&self, target: &dyn Target, collection: &str) -> Option<Backlog> {
        let at = self.clock.elapsed();
        // A server that does not answer has not said that it is idle.
        let backlog = Backlog::of(target, collection).ok();
        if let Ok(mut idle) = self.idle.lock() {
            idle.saw(at, backlog.as_ref().is_some_and(Backlog::is_idle));
        }
        if let Ok(mut moments) = self.moments.lock() {
            moments.push(Moment {
                at,
                backlog: backlog.clone(),
                reading: self.reading(),
            });
        }
        backlog
    }

    /// What has been used up to now.
    pub(crate) fn reading(&self) -> Reading {
        Reading::now(self.process)
    }

    /// Forgets what was seen of the work: a new phase begins.
    pub(crate) fn begin_phase(&self) {
        if let Ok(mut idle) = self.idle.lock() {
            *idle = Idle {
                from: self.clock.elapsed(),
                ..Idle::default()
            };
        }
    }

    /// What was seen of the work since then.
    pub(crate) fn idle(&self) -> Idle {
        self.idle
            .lock()
            .map_or_else(|_| Idle::default(), |idle| *idle)
    }

    /// The thread ends.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// All polls, and the jobs with the first and the last poll that saw each.
    pub(crate) fn series(&self) -> Value {
        let moments = self
            .moments
            .lock()
            .map_or_else(|_| Vec::new(), |moments| moments.clone());
        json!({ "moments": moments.iter().map(moment).collect::<Vec<_>>(), "jobs": jobs(&moments) })
    }
}

/// Does `work` while the watch polls.
pub(super) fn with_watch<T>(watch: &Watch, setup: &Setup, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let collection = &setup.subject.collection;
        scope.spawn(|| watch.run(setup.target.as_ref(), collection, setup.poll));
        let outcome = work();
        watch.end();
        outcome
    })
}

fn moment(moment: &Moment) -> Value {
    let server = moment.reading.server;
    let mut shown = json!({
        "t": seconds(moment.at),
        "cpu_s": server.cpu_s,
        "resident_mb": server.resident_bytes >> 20,
        "written_mb": server.written_bytes >> 20,
        "major_faults": server.major_faults,
        "load_1m": moment.reading.machine.load_1m,
    });
    if let Some(backlog) = &moment.backlog {
        shown["points"] = json!(backlog.points);
        shown["indexed"] = json!(backlog.indexed);
        shown["segments"] = json!(backlog.segments);
        shown["running"] = json!(backlog.running);
        shown["queued"] = json!(backlog.queued);
        shown["queued_points"] = json!(backlog.queued_points);
        shown["status"] = json!(backlog.status);
    }
    shown
}

fn jobs(moments: &[Moment]) -> Vec<Value> {
    let mut seen = BTreeMap::<&str, (Duration, Duration, &str, u64)>::new();
    for moment in moments {
        let jobs = moment.backlog.iter().flat_map(|backlog| &backlog.jobs);
        for (id, optimizer, points) in jobs {
            let first = (moment.at, moment.at, optimizer.as_str(), *points);
            seen.entry(id).or_insert(first).1 = moment.at;
        }
    }
    let mut jobs: Vec<_> = seen.into_values().collect();
    jobs.sort();
    let shown = |(from, to, optimizer, points)| {
        json!({
            "optimizer": optimizer,
            "from": seconds(from),
            "to": seconds(to),
            "points": points,
        })
    };
    jobs.into_iter().map(shown).collect()
}

/// Seconds with three digits behind the point.
pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_three_quiet_polls_in_a_row() {
        let mut idle = Idle::default();
        let at = Duration::from_secs;
        for (second, is_idle) in [(0, true), (1, true), (2, false), (3, true), (4, true)] {
            idle.saw(at(second), is_idle);
            assert!(!idle.is_certain());
        }
        idle.saw(at(5), true);
        assert!(idle.is_certain());
        assert_eq!((idle.last_busy, idle.since), (Some(at(2)), Some(at(3))));
        let mut later = Idle {
            from: at(10),
            ..Idle::default()
        };
        for second in 7..10 {
            later.saw(at(second), true);
        }
        assert!(!later.is_certain() && later.since.is_none());
    }

    #[test]
    fn the_backlog_is_read_from_the_answers_of_the_api() {
        let info = json!({ "points_count": 100, "indexed_vectors_count": 40, "segments_count": 3, "status": "yellow" });
        let work = json!({
            "summary": { "queued_optimizations": 2, "queued_points": 60 },
            "running": [{ "uuid": "a", "optimizer": "merge", "segments": [{ "points_count": 5 }, { "points_count": 6 }] }],
        });
        let backlog = Backlog::read(&info, &work);
        assert_eq!(
            (backlog.running, backlog.queued, backlog.queued_points),
            (1, 2, 60)
        );
        assert_eq!(
            backlog.jobs,
            [(String::from("a"), String::from("merge"), 11)]
        );
        assert!((backlog.unindexed_share() - 0.6).abs() < 1e-9 && !backlog.is_idle());
        let nothing = json!({ "summary": { "queued_optimizations": 0 }, "running": [] });
        assert!(Backlog::read(&info, &nothing).is_idle());
    }

    #[test]
    fn a_job_lasts_from_the_first_to_the_last_poll_that_saw_it() {
        let moment = |second: u64, ids: &[&str]| Moment {
            at: Duration::from_secs(second),
            backlog: Some(Backlog {
                jobs: ids
                    .iter()
                    .map(|id| ((*id).to_owned(), String::from("indexing"), 7))
                    .collect(),
                ..Backlog::default()
            }),
            reading: Reading::default(),
        };
        let moments = [
            moment(1, &["a"]),
            moment(2, &["a", "b"]),
            moment(3, &["b"]),
            moment(4, &[]),
        ];
        let shown = jobs(&moments);
        assert_eq!(
            shown[0],
            json!({ "optimizer": "indexing", "from": 1.0, "to": 2.0, "points": 7 })
        );
        assert_eq!(
            (&shown[1]["from"], &shown[1]["to"]),
            (&json!(2.0), &json!(3.0))
        );
    }
}
