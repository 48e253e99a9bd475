//! What background work has cost, and from that what it will cost.
//!
//! 1. A job that is done leaves a sample: how much work it was and how long it took. The last
//!    [`SAMPLES_MAX`] of each kind are kept.
//! 2. Work is measured in units that its time grows with: values copied, and where a graph is built,
//!    values compared while a row finds its place.
//! 3. An estimate is the median time of a unit, times the units; its band goes from the 10th to the 90th
//!    percentile. Before anything of a kind was seen it is a wide guess, and says so.
//!
//! All of it is pure but [`Costs`], which keeps the log in one small file. A file that cannot be read or
//! written costs nothing but what was learnt.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use flatwater_segment::dir::Directory;
use flatwater_segment::file::codec::{Decoder, Encoder};
use flatwater_segment::file::{self, Damage, Kind};
use parking_lot::Mutex;

use super::policy::facts::Optimizer;

const FILE: &str = "costs";
const KIND: Kind = *b"COST";
const VERSION: u32 = 1;

/// Samples of a kind that are kept: enough for percentiles, few enough that a changed machine or data
/// set shows within a day of work.
pub const SAMPLES_MAX: usize = 32;

/// Shorter jobs tell of the noise of the machine, not of the work.
const SHORTEST: Duration = Duration::from_millis(100);

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkKind {
    /// Rows of a growing segment go into a graph.
    Indexing,
    /// A full segment becomes immutable files.
    Seal,
    /// Several segments become one.
    Merge,
    /// A segment is written without its dead rows.
    Vacuum,
    /// A segment is written with other graphs.
    ConfigMismatch,
}

impl WorkKind {
    /// All of them, in the order of their numbers in the file.
    pub const ALL: [Self; 5] = [
        Self::Indexing,
        Self::Seal,
        Self::Merge,
        Self::Vacuum,
        Self::ConfigMismatch,
    ];

    /// In a word, or as Qdrant names the optimizer.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seal => "seal",
            Self::Indexing => Optimizer::Indexing.name(),
            Self::Merge => Optimizer::Merge.name(),
            Self::Vacuum => Optimizer::Vacuum.name(),
            Self::ConfigMismatch => Optimizer::ConfigMismatch.name(),
        }
    }

    /// What an optimizer does when it writes segments anew.
    #[must_use]
    pub fn of_rewrite(optimizer: Optimizer) -> Self {
        match optimizer {
            // The only segments that indexing writes are those it seals.
            Optimizer::Indexing => Self::Seal,
            Optimizer::Merge => Self::Merge,
            Optimizer::Vacuum => Self::Vacuum,
            Optimizer::ConfigMismatch => Self::ConfigMismatch,
        }
    }

    /// Seconds of a unit before anything was seen: low, middle, high. Graphs of 384 dimensions took between
    /// 0.02 and 2 ms a row on the machines at hand, copies between 50 MB/s and 2 GB/s.
    fn prior(self) -> [f64; 3] {
        match self {
            Self::Seal => [2e-9, 2e-8, 2e-7],
            _ => [4e-9, 4e-8, 4e-7],
        }
    }
}

/// How much a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// What it does.
    pub kind: WorkKind,
    /// Rows it writes or inserts.
    pub rows: u64,
    /// Rows of the graph that they end up in.
    pub graph_rows: u64,
    /// Dimensions of all vectors of a row together.
    pub dims: u64,
}

impl Work {
    /// Of rows that are written as a segment of their own.
    #[must_use]
    pub fn whole(kind: WorkKind, rows: u64, dims: u64) -> Self {
        Self {
            kind,
            rows,
            graph_rows: rows,
            dims,
        }
    }

    /// What its time grows with. A row finds its place in a graph in steps that grow with the logarithm of
    /// the graph; a seal copies what is there.
    #[must_use]
    pub fn units(&self) -> f64 {
        let steps = match self.kind {
            WorkKind::Seal => 1.0,
            _ => (self.graph_rows.max(2) as f64).log2(),
        };
        self.rows as f64 * self.dims as f64 * steps
    }
}

/// What an estimate rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Nothing of this kind was seen yet.
    Prior,
    /// So many jobs of this kind.
    Learnt {
        /// How many.
        samples: usize,
    },
}

/// How long work will take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Seconds, most likely.
    pub seconds: f64,
    /// One job in ten takes less.
    pub low: f64,
    /// One job in ten takes more.
    pub high: f64,
    /// What it rests on.
    pub basis: Basis,
}

/// From this share of a job on its own pace is looked at.
const PACE_FROM: f64 = 0.05;

/// How far the rest of a job strays from the pace it had so far.
const PACE_BAND: f64 = 1.25;

impl Estimate {
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            seconds: f(self.seconds),
            low: f(self.low),
            high: f(self.high),
            basis: self.basis,
        }
    }

    /// What is left of a job of which `self` was the whole, once the share `done` of it took `elapsed`
    /// seconds: the further it is, the more its own pace counts.
    #[must_use]
    pub fn rest(self, done: f64, elapsed: f64) -> Self {
        let done = done.clamp(0.0, 1.0);
        if done < PACE_FROM {
            // It does not tell how far it is, or has hardly begun.
            return self.map(|seconds| (seconds - elapsed).max(0.0));
        }
        let pace = elapsed * (1.0 - done) / done;
        let blend = |by_log: f64, by_pace: f64| by_log * (1.0 - done).powi(2) + by_pace * done;
        Self {
            seconds: blend(self.seconds, pace),
            low: blend(self.low, pace / PACE_BAND),
            high: blend(self.high, pace * PACE_BAND),
            basis: self.basis,
        }
    }

    /// Of all of these one after another; nothing takes no time. It rests on the weakest of them.
    #[must_use]
    pub fn sum(estimates: impl IntoIterator<Item = Self>) -> Option<Self> {
        estimates.into_iter().reduce(|a, b| Self {
            seconds: a.seconds + b.seconds,
            low: a.low + b.low,
            high: a.high + b.high,
            basis: match (a.basis, b.basis) {
                (Basis::Learnt { samples: a }, Basis::Learnt { samples: b }) => {
                    Basis::Learnt { samples: a.min(b) }
                }
                _ => Basis::Prior,
            },
        })
    }
}

/// One job that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    rows: u64,
    graph_rows: u64,
    dims: u64,
    micros: u64,
}

impl Sample {
    fn work(&self, kind: WorkKind) -> Work {
        Work {
            kind,
            rows: self.rows,
            graph_rows: self.graph_rows,
            dims: self.dims,
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostLog {
    /// Oldest first.
    samples: BTreeMap<WorkKind, VecDeque<Sample>>,
}

impl CostLog {
    /// Takes in a job that is done; false if it was too short or too little to tell anything.
    pub fn record(&mut self, work: Work, took: Duration) -> bool {
        if took < SHORTEST || work.units() <= 0.0 {
            return false;
        }
        let samples = self.samples.entry(work.kind).or_default();
        samples.push_back(Sample {
            rows: work.rows,
            graph_rows: work.graph_rows,
            dims: work.dims,
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        });
        if samples.len() > SAMPLES_MAX {
            samples.pop_front();
        }
        true
    }

    /// How long `work` will take.
    #[must_use]
    pub fn estimate(&self, work: Work) -> Estimate {
        let units = work.units();
        let ([low, seconds, high], basis) = match self.rates(work.kind) {
            rates if rates.is_empty() => (work.kind.prior(), Basis::Prior),
            rates => {
                let samples = rates.len();
                (band(&rates), Basis::Learnt { samples })
            }
        };
        Estimate {
            seconds,
            low,
            high,
            basis,
        }
        .map(|rate| rate * units)
    }

    /// Seconds a unit took, ascending.
    fn rates(&self, kind: WorkKind) -> Vec<f64> {
        let samples = self.samples.get(&kind).into_iter().flatten();
        let mut rates: Vec<f64> = samples
            .map(|sample| sample.micros as f64 / 1e6 / sample.work(kind).units())
            .collect();
        rates.sort_by(f64::total_cmp);
        rates
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        for kind in WorkKind::ALL {
            let samples = self.samples.get(&kind);
            out.u64(samples.map_or(0, VecDeque::len) as u64);
            for sample in samples.into_iter().flatten() {
                out.u64(sample.rows);
                out.u64(sample.graph_rows);
                out.u64(sample.dims);
                out.u64(sample.micros);
            }
        }
        file::encode(KIND, VERSION, out.as_bytes())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let mut input = file::open(KIND, VERSION, bytes)?;
        let mut log = Self::default();
        for kind in WorkKind::ALL {
            let samples = (0..input.count(32)?)
                .map(|_| decode_sample(&mut input))
                .collect::<Result<VecDeque<_>, _>>()?;
            let told = samples.into_iter();
            // What tells nothing would divide by nothing.
            let told: VecDeque<Sample> = told.filter(|s| s.work(kind).units() > 0.0).collect();
            if !told.is_empty() {
                log.samples.insert(kind, told);
            }
        }
        input.finish()?;
        Ok(log)
    }
}

fn decode_sample(input: &mut Decoder<'_>) -> Result<Sample, Damage> {
    Ok(Sample {
        rows: input.u64()?,
        graph_rows: input.u64()?,
        dims: input.u64()?,
        micros: input.u64()?,
    })
}

/// 10th percentile, median and 90th percentile of ascending rates. Few samples lie closer together than
/// what is to come, so the band is at least a factor of `1 + 1 / samples` on either side.
fn band(rates: &[f64]) -> [f64; 3] {
    let middle = percentile(rates, 0.5);
    let least = 1.0 + 1.0 / rates.len() as f64;
    [
        percentile(rates, 0.1).min(middle / least),
        middle,
        percentile(rates, 0.9).max(middle * least),
    ]
}

/// Between the two that lie around the place `share` of the way through.
fn percentile(ascending: &[f64], share: f64) -> f64 {
    let place = share * (ascending.len().saturating_sub(1)) as f64;
    let at = |place: f64| ascending.get(place as usize).copied().unwrap_or(0.0);
    let (below, above) = (at(place.floor()), at(place.ceil()));
    below + (above - below) * place.fract()
}

/// The cost log of an engine, in a small file.
#[derive(Debug)]
pub struct Costs {
    dir: Arc<dyn Directory>,
    log: Mutex<CostLog>,
}

impl Costs {
    /// Reads the file in `dir`; without one, or with one that cannot be read, nothing was seen yet.
    #[must_use]
    pub fn open(dir: Arc<dyn Directory>) -> Self {
        let log = Mutex::new(read(dir.as_ref()));
        Self { dir, log }
    }

    /// Takes in a job that is done. A file that cannot be written is worth a warning: what was learnt
    /// serves until the process ends.
    ///
    /// Blocks: for a small file, if the job told anything.
    pub fn learn(&self, work: Work, took: Duration) {
        let bytes = {
            let mut log = self.log.lock();
            if !log.record(work, took) {
                return;
            }
            log.encode()
        };
        if let Err(error) = self.dir.write_atomic(FILE, &bytes) {
            tracing::warn!(%error, "what a job cost was not written; estimates begin anew after a restart");
        }
    }

    /// How long `work` will take.
    #[must_use]
    pub fn estimate(&self, work: Work) -> Estimate {
        self.log.lock().estimate(work)
    }
}

fn read(dir: &dyn Directory) -> CostLog {
    let bytes = match dir.exists(FILE) {
        Ok(false) => return CostLog::default(),
        Ok(true) => dir.read(FILE),
        Err(error) => Err(error),
    };
    let decoded = bytes
        .map_err(|error| error.to_string())
        .and_then(|bytes| CostLog::decode(&bytes).map_err(|damage| damage.to_string()));
    decoded.unwrap_or_else(|reason| {
        tracing::warn!(
            reason,
            "the log of costs cannot be read; estimates begin anew"
        );
        CostLog::default()
    })
}

#[cfg(test)]
mod tests {
    use flatwater_segment::dir::MemDirectory;

    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn merge(rows: u64) -> Work {
        Work::whole(WorkKind::Merge, rows, 100)
    }

    #[test]
    fn before_anything_was_seen_the_estimate_is_a_wide_guess_and_says_so() {
        let guess = CostLog::default().estimate(merge(100_000));
        assert_eq!(guess.basis, Basis::Prior);
        assert!(guess.high / guess.low >= 50.0 && guess.low < guess.seconds);
        assert!(guess.seconds < guess.high);
    }

    #[test]
    fn an_estimate_scales_with_the_work_and_narrows_with_what_was_seen() {
        let mut log = CostLog::default();
        log.record(merge(100_000), seconds(10.0));
        let one = log.estimate(merge(100_000));
        assert_eq!(one.basis, Basis::Learnt { samples: 1 });
        assert!((one.seconds - 10.0).abs() < 1e-6);
        assert!((one.low - 5.0).abs() < 1e-6 && (one.high - 20.0).abs() < 1e-6);
        let double = log.estimate(merge(200_000));
        assert!(double.seconds > 20.0 && double.seconds < 22.0, "{double:?}");
        for n in 0..10 {
            log.record(merge(100_000), seconds(9.0 + 0.2 * f64::from(n)));
        }
        let many = log.estimate(merge(100_000));
        assert!(many.low > 8.5 && many.high < 11.5, "{many:?}");
        assert!((many.seconds - 10.0).abs() < 0.5);
        // What one kind cost says nothing of another.
        let vacuum = Work::whole(WorkKind::Vacuum, 1000, 100);
        assert_eq!(log.estimate(vacuum).basis, Basis::Prior);
    }

    #[test]
    fn one_odd_job_in_twenty_moves_neither_the_middle_nor_the_band() {
        let mut log = CostLog::default();
        for _ in 0..19 {
            log.record(merge(1000), seconds(1.0));
        }
        log.record(merge(1000), seconds(1000.0));
        let estimate = log.estimate(merge(1000));
        assert!((estimate.seconds - 1.0).abs() < 1e-6 && estimate.high < 1.1);
    }

    #[test]
    fn short_jobs_and_jobs_without_rows_tell_nothing_and_the_log_is_bounded() {
        let mut log = CostLog::default();
        assert!(!log.record(merge(1000), Duration::from_millis(99)));
        assert!(!log.record(merge(0), seconds(5.0)));
        assert_eq!(log, CostLog::default());
        for n in 0..3 * SAMPLES_MAX {
            assert!(log.record(merge(1000), seconds(1.0 + n as f64)));
        }
        let kept = &log.samples[&WorkKind::Merge];
        assert_eq!(kept.len(), SAMPLES_MAX);
        assert_eq!(
            kept[SAMPLES_MAX - 1].micros,
            3 * SAMPLES_MAX as u64 * 1_000_000
        );
    }

    #[test]
    fn a_running_job_is_told_by_the_log_first_and_by_its_own_pace_at_the_end() {
        let mut log = CostLog::default();
        log.record(merge(1000), seconds(100.0));
        let whole = log.estimate(merge(1000));
        // It has not told how far it is: what was foreseen, less what has passed.
        assert!((whole.rest(0.0, 30.0).seconds - 70.0).abs() < 1e-6);
        assert!(whole.rest(0.0, 500.0).seconds.abs() < 1e-6);
        // It runs at half the speed foreseen: 190 s for 95 %.
        let late = whole.rest(0.95, 190.0);
        assert!((late.seconds - 10.0).abs() < 1.0, "{late:?}");
        assert!(late.low < late.seconds && late.seconds < late.high);
        assert!(late.high < 15.0, "{late:?}");
        let end = whole.rest(1.0, 200.0);
        assert!(end.seconds.abs() < 1e-9 && end.high.abs() < 1e-9);
    }

    #[test]
    fn a_sum_rests_on_the_weakest_part() {
        let mut log = CostLog::default();
        log.record(merge(1000), seconds(2.0));
        let known = log.estimate(merge(1000));
        let guess = log.estimate(Work::whole(WorkKind::Seal, 1000, 100));
        assert_eq!(Estimate::sum([]), None);
        let both = Estimate::sum([known, known]).unwrap();
        assert!((both.seconds - 4.0).abs() < 1e-6);
        assert_eq!(both.basis, Basis::Learnt { samples: 1 });
        assert_eq!(Estimate::sum([known, guess]).unwrap().basis, Basis::Prior);
    }

    #[test]
    fn what_was_learnt_survives_a_restart_and_damage_costs_nothing_else() {
        let dir: Arc<dyn Directory> = Arc::new(MemDirectory::new());
        let costs = Costs::open(Arc::clone(&dir));
        costs.learn(merge(1000), seconds(3.0));
        let seal = Work::whole(WorkKind::Seal, 500, 7);
        costs.learn(seal, seconds(0.5));
        let again = Costs::open(Arc::clone(&dir));
        assert_eq!(*again.log.lock(), *costs.log.lock());
        assert!((again.estimate(seal).seconds - 0.5).abs() < 1e-6);
        let bytes = dir.read(FILE).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(CostLog::decode(&damaged).is_err(), "byte {at}");
        }
        dir.write_atomic(FILE, &bytes[..bytes.len() - 1]).unwrap();
        let fresh = Costs::open(dir);
        assert_eq!(fresh.estimate(merge(1000)).basis, Basis::Prior);
    }
}
