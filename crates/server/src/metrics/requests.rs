//! How many requests were answered, how, and in which time.
//!
//! A request costs a look-up under a lock that only the first request of an endpoint takes for itself,
//! and a few additions. A scrape holds that lock, shared with the requests, for as long as it takes to
//! copy some pointers.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;

use super::families::{Families, Histogram, Label, label};

/// Upper bounds of the buckets, nanoseconds: Qdrant's eleven (1 ms to 50 s), and between them those that
/// tell fast searches apart.
const BOUNDS_NS: [u64; 19] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_000_000,
    3_000_000,
    5_000_000,
    7_000_000,
    10_000_000,
    15_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
    10_000_000_000,
    50_000_000_000,
];

/// Endpoints that are told apart. There are some forty; the bound is there for names that clients choose.
const ENDPOINTS_MAX: usize = 256;

/// What a request asks an endpoint to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A call of gRPC: it has no verb.
    Call,
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl Verb {
    const ALL: [Self; 7] = [
        Self::Call,
        Self::Get,
        Self::Head,
        Self::Post,
        Self::Put,
        Self::Patch,
        Self::Delete,
    ];

    /// The verb of a method of HTTP; none for those that no endpoint has.
    pub(crate) fn of(method: &str) -> Option<Self> {
        let named = |verb: &Self| verb.name() == Some(method);
        Self::ALL.into_iter().find(named)
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Self::Call => None,
            Self::Get => Some("GET"),
            Self::Head => Some("HEAD"),
            Self::Post => Some("POST"),
            Self::Put => Some("PUT"),
            Self::Patch => Some("PATCH"),
            Self::Delete => Some("DELETE"),
        }
    }
}

/// The requests of one interface.
#[derive(Debug)]
pub(crate) struct Requests {
    codes: RangeInclusive<u16>,
    /// Only answers with this code have their times told.
    timed: u16,
    endpoints: RwLock<HashMap<Box<str>, Arc<Endpoint>>>,
}

/// One endpoint, by verb.
#[derive(Debug, Default)]
struct Endpoint {
    verbs: [OnceLock<Counts>; Verb::ALL.len()],
}

/// Counts of one verb of an endpoint.
#[derive(Debug)]
struct Counts {
    /// Answers by code.
    answers: Box<[AtomicU64]>,
    times: Times,
}

/// Times of the answers that are timed.
#[derive(Debug)]
struct Times {
    buckets: [AtomicU64; BOUNDS_NS.len() + 1],
    sum_ns: AtomicU64,
    least_ns: AtomicU64,
    most_ns: AtomicU64,
}

impl Times {
    fn record(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_NS.partition_point(|&bound| bound < ns);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
        // Looking first: these settle soon, and a line that nobody writes costs the cores nothing.
        if ns < self.least_ns.load(Ordering::Relaxed) {
            self.least_ns.fetch_min(ns, Ordering::Relaxed);
        }
        if ns > self.most_ns.load(Ordering::Relaxed) {
            self.most_ns.fetch_max(ns, Ordering::Relaxed);
        }
    }

    fn histogram(&self) -> Histogram {
        let bounds = BOUNDS_NS.map(|ns| ns as f64 / 1e9).into_iter();
        let counts = self.buckets.iter().map(|n| n.load(Ordering::Relaxed));
        Histogram {
            sum: self.sum_ns.load(Ordering::Relaxed) as f64 / 1e9,
            buckets: bounds.chain([f64::INFINITY]).zip(counts).collect(),
        }
    }
}

impl Counts {
    fn new(codes: usize) -> Self {
        Self {
            answers: (0..codes).map(|_| AtomicU64::new(0)).collect(),
            times: Times {
                buckets: std::array::from_fn(|_| AtomicU64::new(0)),
                sum_ns: AtomicU64::new(0),
                least_ns: AtomicU64::new(u64::MAX),
                most_ns: AtomicU64::new(0),
            },
        }
    }
}

impl Requests {
    /// Answers with these codes are counted; those with the code `timed` have their times told.
    pub(crate) fn new(codes: RangeInclusive<u16>, timed: u16) -> Self {
        Self {
            codes,
            timed,
            endpoints: RwLock::default(),
        }
    }

    /// Counts an answer of an endpoint.
    pub(crate) fn record(&self, verb: Verb, endpoint: &str, code: u16, took: Duration) {
        if !self.record_known(verb, endpoint, code, took) {
            let mut endpoints = self.endpoints.write();
            if endpoints.len() < ENDPOINTS_MAX {
                endpoints.entry(endpoint.into()).or_default();
            }
            drop(endpoints);
            self.record_known(verb, endpoint, code, took);
        }
    }

    /// Counts an answer of an endpoint that had one before; false if it had none.
    pub(crate) fn record_known(
        &self,
        verb: Verb,
        endpoint: &str,
        code: u16,
        took: Duration,
    ) -> bool {
        let endpoints = self.endpoints.read();
        let Some(endpoint) = endpoints.get(endpoint) else {
            return false;
        };
        let counts = endpoint.verbs[verb as usize].get_or_init(|| Counts::new(self.codes.len()));
        let place = code.checked_sub(*self.codes.start());
        if let Some(answers) = place.and_then(|place| counts.answers.get(usize::from(place))) {
            answers.fetch_add(1, Ordering::Relaxed);
        }
        if code == self.timed {
            counts.times.record(took);
        }
        true
    }

    /// Every endpoint that was asked, sorted.
    fn listed(&self) -> Vec<(Box<str>, Arc<Endpoint>)> {
        let endpoints = self.endpoints.read();
        let mut listed: Vec<_> = endpoints
            .iter()
            .map(|(path, endpoint)| (path.clone(), Arc::clone(endpoint)))
            .collect();
        drop(endpoints);
        listed.sort_by(|a, b| a.0.cmp(&b.0));
        listed
    }

    /// Writes the families of an interface, whose names begin with `interface`.
    pub(super) fn encode(&self, out: &mut Families<'_>, interface: &str) -> fmt::Result {
        let listed = self.listed();
        let asked = asked(&listed);
        let answers = asked.iter().flat_map(|(labels, counts)| {
            let by_code = self.codes.clone().zip(counts.answers.iter());
            let counted = by_code.map(|(code, count)| (code, count.load(Ordering::Relaxed)));
            counted
                .filter(|(_, count)| *count > 0)
                .map(move |(code, count)| (with_code(labels, code), count))
        });
        out.counters(&format!("{interface}_responses"), "Answers.", answers)?;
        let timed = asked.iter().map(|(labels, counts)| Timed {
            labels: with_code(labels, self.timed),
            least: seconds(&counts.times.least_ns),
            most: seconds(&counts.times.most_ns),
            histogram: counts.times.histogram(),
        });
        let timed: Vec<Timed> = timed.filter(|one| one.histogram.count() > 0).collect();
        encode_times(out, interface, timed)
    }
}

/// The times of one verb of an endpoint.
struct Timed {
    labels: Vec<Label>,
    least: f64,
    most: f64,
    histogram: Histogram,
}

impl Timed {
    fn average(&self) -> f64 {
        self.histogram.sum / self.histogram.count() as f64
    }
}

fn seconds(ns: &AtomicU64) -> f64 {
    ns.load(Ordering::Relaxed) as f64 / 1e9
}

/// Every verb of every endpoint that was asked, with its labels.
fn asked(listed: &[(Box<str>, Arc<Endpoint>)]) -> Vec<(Vec<Label>, &Counts)> {
    let all = listed.iter().flat_map(|(path, endpoint)| {
        let verbs = Verb::ALL.into_iter().zip(&endpoint.verbs);
        verbs.filter_map(move |(verb, counts)| {
            let method = verb.name().map(|name| label("method", name));
            let endpoint = label("endpoint", &**path);
            let labels = method.into_iter().chain([endpoint]).collect();
            Some((labels, counts.get()?))
        })
    });
    all.collect()
}

fn with_code(labels: &[Label], code: u16) -> Vec<Label> {
    let mut labels = labels.to_vec();
    labels.push(label("status", code.to_string()));
    labels
}

fn encode_times(out: &mut Families<'_>, interface: &str, timed: Vec<Timed>) -> fmt::Result {
    let name = |what: &str| format!("{interface}_responses_{what}duration_seconds");
    let average = timed.iter().map(|one| (one.labels.clone(), one.average()));
    out.gauges(&name("avg_"), "Average time to an answer.", average)?;
    let least = timed.iter().map(|one| (one.labels.clone(), one.least));
    out.gauges(&name("min_"), "Least time to an answer.", least)?;
    let most = timed.iter().map(|one| (one.labels.clone(), one.most));
    out.gauges(&name("max_"), "Longest time to an answer.", most)?;
    let histograms = timed.into_iter().map(|one| (one.labels, one.histogram));
    out.histograms(&name(""), "Times to an answer.", histograms)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn count(requests: &Requests, verb: Verb, endpoint: &str, code: u16) -> u64 {
        let endpoints = requests.endpoints.read();
        let counts = endpoints[endpoint].verbs[verb as usize].get().unwrap();
        let place = usize::from(code - requests.codes.start());
        counts.answers[place].load(Ordering::Relaxed)
    }

    #[test]
    fn answers_are_counted_by_verb_path_and_code_and_only_good_ones_timed() {
        let requests = Requests::new(100..=599, 200);
        let ms = Duration::from_millis;
        for took in [1, 2, 400] {
            requests.record(Verb::Post, "/a", 200, ms(took));
        }
        requests.record(Verb::Post, "/a", 404, ms(7_000));
        requests.record(Verb::Get, "/a", 200, ms(1));
        requests.record(Verb::Get, "/a", 700, ms(1));
        assert_eq!(count(&requests, Verb::Post, "/a", 200), 3);
        assert_eq!(count(&requests, Verb::Post, "/a", 404), 1);
        assert_eq!(count(&requests, Verb::Get, "/a", 200), 1);
        let endpoints = requests.endpoints.read();
        let times = &endpoints["/a"].verbs[Verb::Post as usize]
            .get()
            .unwrap()
            .times;
        let histogram = times.histogram();
        assert_eq!(histogram.count(), 3);
        assert!((histogram.sum - 0.403).abs() < 1e-9);
        let at = |le: f64| -> u64 {
            let below = histogram.buckets.iter().filter(|(bound, _)| *bound <= le);
            below.map(|(_, count)| count).sum()
        };
        assert_eq!(
            (at(0.0005), at(0.001), at(0.002), at(0.2), at(0.5)),
            (0, 1, 2, 2, 3)
        );
        assert_eq!(times.least_ns.load(Ordering::Relaxed), 1_000_000);
        assert_eq!(times.most_ns.load(Ordering::Relaxed), 400_000_000);
    }

    #[test]
    fn the_bounds_of_qdrants_buckets_are_among_ours() {
        let qdrants = [
            0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0,
        ];
        let ours = BOUNDS_NS.map(|ns| ns as f64 / 1e9);
        assert!(ours.is_sorted());
        assert!(qdrants.iter().all(|bound| ours.contains(bound)), "{ours:?}");
    }

    #[test]
    fn there_are_no_more_endpoints_than_the_bound() {
        let requests = Requests::new(0..=16, 0);
        for n in 0..2 * ENDPOINTS_MAX {
            requests.record(Verb::Call, &format!("/{n}"), 0, Duration::ZERO);
        }
        assert_eq!(requests.listed().len(), ENDPOINTS_MAX);
        assert!(!requests.record_known(Verb::Call, "/none", 0, Duration::ZERO));
    }

    #[test]
    fn recording_a_request_takes_no_time_that_matters() {
        let requests = Requests::new(100..=599, 200);
        let path = "/collections/{collection_name}/points/query";
        requests.record(Verb::Post, path, 200, Duration::from_millis(1));
        let rounds = 20_000;
        let best = (0..5).map(|_| {
            let begin = Instant::now();
            for n in 0..rounds {
                requests.record(Verb::Post, path, 200, Duration::from_micros(n));
            }
            begin.elapsed() / rounds as u32
        });
        let best = best.min().unwrap();
        println!("recording a request: {best:?}");
        // Unoptimised code on a shared machine; optimised it is a tenth of that.
        assert!(best < Duration::from_micros(20), "{best:?}");
    }
}
