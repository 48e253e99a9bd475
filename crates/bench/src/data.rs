//! Test vectors: int8 rows with a fixed dither, half-precision queries, both brought to length 1.

use std::error::Error;
use std::path::Path;

use flatwater_index::distance::normalize;

/// Rows and held-out queries.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) dim: usize,
    pub(crate) rows: Vec<Vec<f32>>,
    pub(crate) queries: Vec<Vec<f32>>,
}

/// What is done to the lengths of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// All are brought to length 1.
    Unit,
    /// Rows and queries stay as they are in the files: whole numbers with a dither, halves.
    AsStored,
}

impl Data {
    /// Reads `base.i8.npy` and `query.f16.npy`; at most `rows_max` rows, of length 1.
    pub(crate) fn load(folder: &Path, rows_max: usize) -> Result<Self, Box<dyn Error>> {
        Self::load_with(folder, rows_max, Length::Unit)
    }

    /// The same, with the lengths that are asked for.
    pub(crate) fn load_with(
        folder: &Path,
        rows_max: usize,
        length: Length,
    ) -> Result<Self, Box<dyn Error>> {
        let (dim, base) = npy(&folder.join("base.i8.npy"), "|i1")?;
        let row = |(index, bytes): (usize, &[u8])| {
            let dithered = (0u64..).zip(bytes).map(|(place, &byte)| {
                let at = index as u64 * dim as u64 + place;
                f32::from(byte as i8) + (splitmix64(at) >> 40) as f32 / (1 << 24) as f32 - 0.5
            });
            length.apply(dithered.collect())
        };
        let rows = base
            .chunks_exact(dim)
            .take(rows_max)
            .enumerate()
            .map(row)
            .collect();
        let (query_dim, halves) = npy(&folder.join("query.f16.npy"), "<f2")?;
        if query_dim != dim {
            return Err(format!("queries have {query_dim} dims, rows {dim}").into());
        }
        let query = |bytes: &[u8]| {
            length.apply(
                bytes
                    .chunks_exact(2)
                    .map(|b| half(u16::from_le_bytes([b[0], b[1]])))
                    .collect(),
            )
        };
        let queries = halves.chunks_exact(2 * dim).map(query).collect();
        Ok(Self { dim, rows, queries })
    }
}

impl Length {
    fn apply(self, mut vector: Vec<f32>) -> Vec<f32> {
        if self == Self::Unit {
            normalize(&mut vector);
        }
        vector
    }
}

/// Steele, Lea and Flood 2014, the mixing step of SplitMix64.
pub(crate) fn splitmix64(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Value of an IEEE 754 half.
pub(crate) fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f32::from(bits & 1023) / 1024.0;
    match exponent {
        0 => sign * fraction * 2f32.powi(-14),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction) * 2f32.powi(exponent - 15),
    }
}

/// Row length and bytes of a two-dimensional array of the given type.
fn npy(path: &Path, wanted: &str) -> Result<(usize, Vec<u8>), Box<dyn Error>> {
    let bad = |what: &str| format!("{}: {what}", path.display());
    let bytes = std::fs::read(path).map_err(|error| bad(&error.to_string()))?;
    if bytes.get(..6) != Some(b"\x93NUMPY") || bytes.get(6) != Some(&1) {
        return Err(bad("not an npy file of version 1").into());
    }
    let len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = bytes
        .get(10..10 + len)
        .ok_or_else(|| bad("the header is cut short"))?;
    let header = String::from_utf8_lossy(header);
    if !header.contains(wanted) || header.contains("'fortran_order': True") {
        return Err(bad(&format!("not rows of type {wanted}")).into());
    }
    let shape = header
        .split('(')
        .nth(1)
        .and_then(|rest| rest.split(')').next())
        .unwrap_or("");
    let dims: Vec<usize> = shape
        .split(',')
        .filter_map(|n| n.trim().parse().ok())
        .collect();
    match dims[..] {
        [_, dim] if dim > 0 => Ok((dim, bytes[10 + len..].to_vec())),
        _ => Err(bad("not an array of rows").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_read_as_their_values() {
        for (bits, value) in [
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x3555, 0.333_251_95),
            (1, 5.960_464_5e-8),
        ] {
            assert_eq!(half(bits), value);
        }
    }

    #[test]
    fn the_rows_in_the_repository_load_as_unit_vectors() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/wordnet-minilm-384");
        let data = Data::load(&folder, 100).unwrap();
        assert_eq!((data.dim, data.rows.len()), (384, 100));
        for row in data.rows.iter().chain(&data.queries) {
            let length: f32 = row.iter().map(|x| x * x).sum();
            assert!((length - 1.0).abs() < 1e-4);
        }
    }
}
