//! Rows for sizes that no file has, with the structure that makes real ones hard: clusters of very
//! different sizes, dims that go together, and a slow drift of what is written.
//!
//! 1. A few latent numbers make a row: the centre of its cluster, plus noise.
//! 2. Each dim is a mix of the latent ones (one fixed random matrix), plus a little noise of its own.
//! 3. The centres move along a line as the row number grows.
//!
//! Row `i` depends on the seed and `i` alone; queries come from a stream of their own.

use std::error::Error;
use std::io;

use super::Rows;
use crate::data::splitmix64;

/// Latent numbers of a row: about what embedding models of some hundred dims really use.
const LATENT: usize = 32;
/// Spread inside a cluster, and noise of each dim, with centres of spread 1.
const SPREAD: f32 = 0.6;
const NOISE: f32 = 0.3;

/// A set of generated rows.
#[derive(Clone, Debug)]
pub(super) struct Generated {
    rows: usize,
    dim: usize,
    clusters: usize,
    /// How far the centres move from the first row to the last, in spreads of centres.
    drift: f32,
    seed: u64,
    /// `LATENT` numbers for each dim.
    mix: Vec<f32>,
}

impl Generated {
    /// Reads `rows=N,dim=N[,clusters=N][,drift=X]`.
    pub(super) fn parse(spec: &str, seed: u64) -> Result<Self, Box<dyn Error>> {
        let (mut rows, mut dim, mut clusters, mut drift) = (0, 0, 100, 0.5);
        for word in spec.split(',').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let whole = || match value.parse::<usize>() {
                Ok(n) if n > 0 => Ok(n),
                _ => Err(format!("`{name}` is `{value}`, not a whole number from 1")),
            };
            match name {
                "rows" => rows = whole()?,
                "dim" => dim = whole()?,
                "clusters" => clusters = whole()?,
                "drift" => {
                    let fault = |_| format!("`drift` is `{value}`, not a number");
                    drift = value.parse().map_err(fault)?;
                }
                _ => return Err(format!("`{name}` is none of rows, dim, clusters, drift").into()),
            }
        }
        if rows == 0 || dim == 0 {
            return Err("a generated set is `generated:rows=N,dim=N`".into());
        }
        let mut stream = Stream::new(seed, u64::MAX);
        let mix = (0..dim * LATENT).map(|_| stream.normal()).collect();
        Ok(Self {
            rows,
            dim,
            clusters,
            drift,
            seed,
            mix,
        })
    }

    /// Queries: rows that are not in the set, from its whole course.
    pub(super) fn queries(&self, count: usize) -> Vec<f32> {
        let mut vectors = vec![0.0; count * self.dim];
        for (at, out) in vectors.chunks_exact_mut(self.dim).enumerate() {
            let moment = at as f32 / count.max(1) as f32;
            self.fill(Stream::new(self.seed, (1 << 48) + at as u64), moment, out);
        }
        vectors
    }

    fn fill(&self, mut stream: Stream, moment: f32, out: &mut [f32]) {
        // The square makes the first clusters large and the last ones small.
        let place = stream.uniform();
        let cluster = (place * place * self.clusters as f32) as u64;
        let mut centre = Stream::new(self.seed ^ 0xC1, cluster);
        let mut path = Stream::new(self.seed ^ 0xD2, cluster);
        let mut latent = [0.0; LATENT];
        for x in &mut latent {
            let moved = self.drift * moment * path.normal();
            *x = centre.normal() + moved + SPREAD * stream.normal();
        }
        for (x, mix) in out.iter_mut().zip(self.mix.chunks_exact(LATENT)) {
            let sum: f32 = mix.iter().zip(&latent).map(|(a, b)| a * b).sum();
            *x = sum / (LATENT as f32).sqrt() + NOISE * stream.normal();
        }
    }
}

impl Rows for Generated {
    fn dim(&self) -> usize {
        self.dim
    }

    fn count(&self) -> usize {
        self.rows
    }

    fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
        for (row, out) in (first..).zip(out.chunks_exact_mut(self.dim)) {
            let moment = row as f32 / self.rows as f32;
            self.fill(Stream::new(self.seed, row as u64), moment, out);
        }
        Ok(())
    }
}

/// Random numbers from a seed and the number of a stream.
pub(crate) struct Stream {
    state: u64,
}

impl Stream {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self {
            state: splitmix64(splitmix64(seed) ^ stream),
        }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        splitmix64(self.state)
    }

    /// From 0 to 1, 1 left out.
    pub(crate) fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    /// Close to the normal distribution: the sum of three uniform numbers, with mean 0 and spread 1.
    pub(crate) fn normal(&mut self) -> f32 {
        let bits = self.next();
        let part = |shift: u32| (bits >> shift & 0x1F_FFFF) as f32 / (1 << 21) as f32;
        (part(0) + part(21) + part(42) - 1.5) * 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_depends_on_seed_and_number_alone() {
        let set = Generated::parse("rows=100,dim=8,clusters=5,drift=1", 7).unwrap();
        let (mut all, mut one) = (vec![0.0; 800], vec![0.0; 8]);
        set.read(0, &mut all).unwrap();
        set.read(42, &mut one).unwrap();
        assert_eq!(all[42 * 8..43 * 8], one);
        assert_ne!(set.queries(1), all[..8]);
        let other = Generated::parse("rows=100,dim=8,clusters=5,drift=1", 8).unwrap();
        other.read(42, &mut one).unwrap();
        assert_ne!(all[42 * 8..43 * 8], one);
    }

    /// Without them every row would be about as far from a query as every other, as no real rows are.
    #[test]
    fn rows_of_one_cluster_are_near_and_drift_moves_them_away() {
        let spread = |drift: f32| {
            let spec = format!("rows=2000,dim=16,clusters=1,drift={drift}");
            let set = Generated::parse(&spec, 3).unwrap();
            let mut rows = vec![0.0; 2000 * 16];
            set.read(0, &mut rows).unwrap();
            let mean = |range: std::ops::Range<usize>| -> Vec<f32> {
                let n = range.len() as f32;
                let rows: Vec<_> = rows
                    .chunks(16)
                    .skip(range.start)
                    .take(range.len())
                    .collect();
                (0..16)
                    .map(|d| rows.iter().map(|r| r[d]).sum::<f32>() / n)
                    .collect()
            };
            let (early, late) = (mean(0..500), mean(1500..2000));
            early
                .iter()
                .zip(&late)
                .map(|(a, b)| (a - b).powi(2))
                .sum::<f32>()
                .sqrt()
        };
        let (still, moving) = (spread(0.0), spread(3.0));
        assert!(moving > 5.0 * still, "{still} {moving}");
    }

    #[test]
    fn a_fault_in_the_description_is_named() {
        for (spec, fault) in [
            ("rows=0,dim=2", "`rows` is `0`"),
            ("rows=2", "generated:rows=N,dim=N"),
            ("rows=2,dim=2,colour=3", "`colour` is none of"),
            ("rows=2,dim=2,drift=x", "`drift` is `x`"),
        ] {
            let text = Generated::parse(spec, 1).unwrap_err().to_string();
            assert!(text.contains(fault), "{text}");
        }
    }
}
