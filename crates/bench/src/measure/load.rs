//! Calls in a closed or an open loop.
//!
//! **Closed**: each client sends its next call when the last one has ended. A slow server gets fewer
//! calls, so that its slow moments weigh little in the percentiles.
//!
//! **Open**: call `i` is due at `start + i / rate`, whatever happened to those before. A free client
//! takes the next one and waits until it is due; latency counts from then on. When all clients wait
//! for the server, calls become late and show it: nothing is omitted because it could not be sent.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::sample::{Outcome, Sample};
use crate::interrupt;
use crate::target::{Failure, Found, Session};

/// Answers that a load keeps for the recall.
const ANSWERS_MAX: usize = 20_000;

/// When calls are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrival {
    Closed,
    /// Calls a second.
    Open(f64),
}

/// What is sent, from how many clients, until when.
pub(crate) struct Load<'a> {
    /// Makes a client.
    pub(crate) session: &'a (dyn Fn() -> Result<Box<dyn Session>, Failure> + Sync),
    /// Makes call number `n`.
    pub(crate) call: &'a (dyn Fn(&mut dyn Session, u64) -> Result<Found, Failure> + Sync),
    pub(crate) arrival: Arrival,
    pub(crate) clients: usize,
    /// At most so many calls.
    pub(crate) calls_max: u64,
    /// No call is begun when this is true.
    pub(crate) is_over: &'a (dyn Fn() -> bool + Sync),
    /// Beginning of the run.
    pub(crate) clock: Instant,
}

/// What was found by call number `call`, begun at `begun`.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) call: u64,
    pub(crate) begun: Duration,
    pub(crate) ids: Vec<u64>,
}

/// All that a load gave, in the order of the beginnings.
#[derive(Debug, Default)]
pub(crate) struct Driven {
    pub(crate) samples: Vec<Sample>,
    /// The first so many.
    pub(crate) answers: Vec<Answer>,
    /// How late free clients sent: the harness's own error, not the server's.
    pub(crate) pacing: Vec<Duration>,
    /// Text of the first failure.
    pub(crate) failure: Option<String>,
    /// How long the load ran.
    pub(crate) elapsed: Duration,
}

impl Load<'_> {
    /// Runs the load to its end.
    pub(crate) fn drive(&self) -> Result<Driven, Failure> {
        let sessions = (0..self.clients.max(1)).map(|_| (self.session)());
        let sessions = sessions.collect::<Result<Vec<_>, _>>()?;
        let (next, start) = (AtomicU64::new(0), Instant::now());
        let all = Mutex::new(Driven::default());
        std::thread::scope(|scope| {
            let (next, all) = (&next, &all);
            for mut session in sessions {
                scope.spawn(move || {
                    let one = self.client(session.as_mut(), next, start);
                    if let Ok(mut all) = all.lock() {
                        all.join(one);
                    }
                });
            }
        });
        let mut all = all.into_inner().unwrap_or_default();
        all.elapsed = start.elapsed();
        if let Arrival::Open(rate) = self.arrival {
            let sent = next.load(Ordering::Relaxed).min(self.calls_max);
            all.samples.extend(self.unsent(sent, rate, start));
        }
        all.samples.sort_by_key(|sample| (sample.begun, sample.due));
        all.answers.sort_by_key(|answer| answer.begun);
        all.answers.truncate(ANSWERS_MAX);
        Ok(all)
    }

    fn client(&self, session: &mut dyn Session, next: &AtomicU64, start: Instant) -> Driven {
        let mut driven = Driven::default();
        // In a closed loop each client calls once at least: a step of a ladder that had no time to
        // begin would have nothing to show.
        let mut is_first = self.arrival == Arrival::Closed;
        while is_first || !self.is_at_end() {
            is_first = false;
            let call = next.fetch_add(1, Ordering::Relaxed);
            if call >= self.calls_max {
                break;
            }
            let due = match self.arrival {
                Arrival::Closed => None,
                Arrival::Open(rate) => Some(start + Duration::from_secs_f64(call as f64 / rate)),
            };
            if let Some(due) = due {
                let is_free = Instant::now() < due;
                if !self.sleep_until(due) {
                    // The end came first. It was not due before it and is no call at all, and no
                    // later one is.
                    break;
                }
                if is_free {
                    driven.pacing.push(due.elapsed());
                }
            }
            self.call_once(session, call, due, &mut driven);
        }
        driven
    }

    fn call_once(
        &self,
        session: &mut dyn Session,
        call: u64,
        due: Option<Instant>,
        driven: &mut Driven,
    ) {
        let begun = Instant::now();
        let result = (self.call)(session, call);
        let ended = self.clock.elapsed();
        let begun = begun.duration_since(self.clock);
        let outcome = match &result {
            Ok(_) => Outcome::Answered,
            Err(Failure::Timeout(_)) => Outcome::TimedOut,
            Err(_) => Outcome::Failed,
        };
        if let Err(failure) = &result
            && driven.failure.is_none()
        {
            driven.failure = Some(failure.to_string());
        }
        let found = result.unwrap_or_default();
        driven.samples.push(Sample {
            due: due.map_or(begun, |due| due.duration_since(self.clock)),
            begun,
            ended,
            outcome,
            server: found.server,
            own: found.own,
            query: call as u32,
        });
        if outcome == Outcome::Answered && driven.answers.len() < ANSWERS_MAX {
            driven.answers.push(Answer {
                call,
                begun,
                ids: found.ids,
            });
        }
    }

    /// Calls that were due before the end and that nobody was free to send.
    fn unsent(&self, sent: u64, rate: f64, start: Instant) -> Vec<Sample> {
        let elapsed = start.elapsed();
        let due = (elapsed.as_secs_f64() * rate) as u64;
        let base = start.duration_since(self.clock);
        let sample = |call: u64| {
            let due = base + Duration::from_secs_f64(call as f64 / rate);
            Sample {
                due,
                begun: base + elapsed,
                ended: base + elapsed,
                outcome: Outcome::Unsent,
                server: None,
                own: Duration::ZERO,
                query: call as u32,
            }
        };
        (sent..due.min(self.calls_max)).map(sample).collect()
    }

    fn is_at_end(&self) -> bool {
        (self.is_over)() || interrupt::is_asked()
    }

    /// False if the load came to its end before.
    fn sleep_until(&self, due: Instant) -> bool {
        const LOOK: Duration = Duration::from_millis(50);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LOOK));
            if left > LOOK && self.is_at_end() {
                return false;
            }
        }
    }
}

impl Driven {
    /// Calls that were answered.
    pub(crate) fn answers_count(&self) -> usize {
        let samples = self.samples.iter();
        samples
            .filter(|sample| sample.outcome == Outcome::Answered)
            .count()
    }

    /// Adds what another client gave.
    pub(crate) fn join(&mut self, other: Self) {
        self.samples.extend(other.samples);
        self.answers.extend(other.answers);
        self.pacing.extend(other.pacing);
        self.failure = self.failure.take().or(other.failure);
        self.elapsed = self.elapsed.max(other.elapsed);
    }
}

/// What the loop itself costs for each call, with a call that does nothing.
pub(crate) fn overhead() -> Duration {
    struct Nothing;
    impl Session for Nothing {
        fn search(&mut self, _: &crate::target::Search<'_>) -> Result<Found, Failure> {
            Ok(Found::default())
        }
        fn upsert(&mut self, _: &crate::target::Batch, _: bool) -> Result<(), Failure> {
            Ok(())
        }
        fn delete(&mut self, _: &[u64], _: bool) -> Result<(), Failure> {
            Ok(())
        }
    }
    const CALLS: u64 = 10_000;
    let load = Load {
        session: &|| Ok(Box::new(Nothing)),
        call: &|_, _| Ok(Found::default()),
        arrival: Arrival::Closed,
        clients: 1,
        calls_max: CALLS,
        is_over: &|| false,
        clock: Instant::now(),
    };
    let driven = load.drive().unwrap_or_default();
    driven.elapsed / CALLS as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::summary::Summary;
    use crate::target::{Batch, Search};

    /// Answers at once, but for one call that takes a second.
    struct Stalls;

    impl Session for Stalls {
        fn search(&mut self, search: &Search<'_>) -> Result<Found, Failure> {
            match search.limit {
                20 => std::thread::sleep(Duration::from_secs(1)),
                30 => return Err(Failure::Timeout(Duration::from_millis(5))),
                40 => return Err(Failure::Connection(String::from("gone"))),
                _ => {}
            }
            Ok(Found {
                ids: vec![search.limit as u64],
                ..Found::default()
            })
        }
        fn upsert(&mut self, _: &Batch, _: bool) -> Result<(), Failure> {
            Ok(())
        }
        fn delete(&mut self, _: &[u64], _: bool) -> Result<(), Failure> {
            Ok(())
        }
    }

    fn drive(arrival: Arrival, calls: u64) -> Driven {
        let load = Load {
            session: &|| Ok(Box::new(Stalls)),
            call: &|session, call| {
                session.search(&Search {
                    vector: &[],
                    limit: call as usize,
                    ef: None,
                    keyword: None,
                })
            },
            arrival,
            clients: 1,
            calls_max: calls,
            is_over: &|| false,
            clock: Instant::now(),
        };
        load.drive().unwrap()
    }

    /// Coordinated omission: at 100 a second, a stall of one second makes the next hundred late.
    #[test]
    fn a_server_that_stalls_for_a_second_shows_it_in_the_open_loop() {
        let open = drive(Arrival::Open(100.0), 200);
        assert_eq!(open.samples.len(), 200);
        let late = |sample: &&Sample| sample.latency() > Duration::from_millis(100);
        let count = open.samples.iter().filter(late).count();
        assert!((85..=180).contains(&count), "{count} late calls");
        let summary = Summary::of(&open.samples);
        assert!(summary.at(0.5) > 1.0, "{summary:?}");
        assert!(summary.max_ms() >= 1000.0, "{summary:?}");
        // A closed loop sees one slow call.
        let closed = drive(Arrival::Closed, 200);
        let count = closed.samples.iter().filter(late).count();
        assert!((1..=5).contains(&count), "{count} late calls");
    }

    #[test]
    fn calls_without_an_answer_are_samples_and_answers_keep_their_call() {
        let driven = drive(Arrival::Closed, 50);
        let of = |outcome| {
            driven
                .samples
                .iter()
                .filter(|s| s.outcome == outcome)
                .count()
        };
        assert_eq!((of(Outcome::TimedOut), of(Outcome::Failed)), (1, 1));
        assert_eq!((of(Outcome::Answered), driven.answers.len()), (48, 48));
        assert!(
            driven
                .answers
                .iter()
                .all(|answer| answer.ids == [answer.call])
        );
        assert_eq!(driven.failure.unwrap(), "no answer within 5ms");
    }

    #[test]
    fn what_was_due_and_never_sent_is_told() {
        let begin = Instant::now();
        let load = Load {
            session: &|| Ok(Box::new(Stalls)),
            call: &|_, _| {
                std::thread::sleep(Duration::from_millis(300));
                Ok(Found::default())
            },
            arrival: Arrival::Open(100.0),
            clients: 2,
            calls_max: u64::MAX,
            is_over: &|| begin.elapsed() > Duration::from_millis(200),
            clock: begin,
        };
        let driven = load.drive().unwrap();
        let unsent = driven
            .samples
            .iter()
            .filter(|s| s.outcome == Outcome::Unsent);
        let unsent: Vec<_> = unsent.collect();
        assert!((20..=60).contains(&unsent.len()), "{} unsent", unsent.len());
        assert!(unsent[0].latency() > unsent[unsent.len() - 1].latency());
    }
}
