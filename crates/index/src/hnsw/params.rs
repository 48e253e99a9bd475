//! The three numbers that shape a graph.

/// How a graph is built; fixed for its life.
///
/// [`Hnsw::new`](super::Hnsw::new) moves values outside the ranges to the nearest bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Links a row asks for at insertion, and the most it holds on an upper level; on level 0 it
    /// holds up to `2 * m` (the paper's `Mmax0`). Range 2 to 256; 16 is the default of Qdrant,
    /// hnswlib and usearch. More: better recall on hard data, `8 * m` bytes a row, slower build.
    pub m: usize,
    /// Width of the search that finds a new row's neighbours (the paper's `efConstruction`).
    /// Range `m` to 65,536; 100 is Qdrant's default. More: better links, build time grows with it.
    pub ef_construct: usize,
    /// Seed of the levels: the same seed and the same batches give the same graph.
    pub seed: u64,
}

/// Largest `m`: `2 * m` must fit the ten bits of a [`Shape`](super::links::Shape) field.
pub(super) const M_MAX: usize = 256;
/// Smallest `m`: with one child a row the tree of parents would be a chain.
const M_MIN: usize = 2;
/// Largest `ef_construct`: beyond it a scan of everything is the better tool.
const EF_CONSTRUCT_MAX: usize = 65_536;

impl Default for Params {
    fn default() -> Self {
        Self {
            m: 16,
            ef_construct: 100,
            seed: 0,
        }
    }
}

impl Params {
    /// The nearest values inside the ranges.
    #[must_use]
    pub fn clamped(self) -> Self {
        let m = self.m.clamp(M_MIN, M_MAX);
        Self {
            m,
            ef_construct: self.ef_construct.clamp(m, EF_CONSTRUCT_MAX),
            ..self
        }
    }

    /// Most links of a row on `level`.
    pub(super) fn links_max(self, level: usize) -> usize {
        if level == 0 { 2 * self.m } else { self.m }
    }
}
