//! Files of rows, all of one shape: a header, then rows of one length with or without a count
//! before each.
//!
//! | ending | header | before a row | numbers |
//! |---|---|---|---|
//! | `fbin`, `ibin`, `u8bin`, `i8bin` | rows and dims, u32 | - | f32, i32, u8, i8 |
//! | `fvecs`, `bvecs`, `ivecs` | - | dims, u32 | f32, u8, i32 |
//! | `npy` | numpy's | - | `<f4`, `<f2`, `\|i1`, `\|u1`, `<i4` |

use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Rows;
use crate::data::{half, splitmix64};

/// Longest header of an npy file that is believed.
const NPY_HEADER_MAX: usize = 1 << 16;

/// Type of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    F32,
    F16,
    I32,
    I8,
    U8,
}

/// Rows in a file.
#[derive(Debug)]
pub(super) struct FileRows {
    file: File,
    element: Element,
    dim: usize,
    count: usize,
    /// Bytes before the first row, and before the numbers of each row.
    header: usize,
    prefix: usize,
    /// Whether each number gets the fixed dither of `tests/flatwater_data.py`.
    is_dithered: bool,
}

impl FileRows {
    /// Opens a file; its ending tells the format.
    pub(super) fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        let at = |error: Box<dyn Error>| format!("{}: {error}", path.display());
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let file = File::open(path).map_err(|error| at(error.into()))?;
        let rows = match &*ending {
            "npy" => Self::npy(file),
            "fbin" => Self::bin(file, Element::F32),
            "ibin" => Self::bin(file, Element::I32),
            "i8bin" => Self::bin(file, Element::I8),
            "u8bin" | "bbin" => Self::bin(file, Element::U8),
            "fvecs" => Self::vecs(file, Element::F32),
            "ivecs" => Self::vecs(file, Element::I32),
            "bvecs" => Self::vecs(file, Element::U8),
            other => Err(format!(
                "`.{other}` is none of npy, fbin, ibin, i8bin, u8bin, fvecs, ivecs, bvecs"
            )
            .into()),
        };
        Ok(rows.map_err(at)?)
    }

    /// The same, with the dither that the sets of this project are meant to have.
    pub(super) fn open_dithered(path: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            is_dithered: true,
            ..Self::open(path)?
        })
    }

    fn bin(file: File, element: Element) -> Result<Self, Box<dyn Error>> {
        let mut header = [0; 8];
        file.read_exact_at(&mut header, 0)?;
        let [count, dim] = [&header[..4], &header[4..]].map(number);
        Self::checked(file, element, (count, dim), 8, 0)
    }

    fn vecs(file: File, element: Element) -> Result<Self, Box<dyn Error>> {
        let mut header = [0; 4];
        file.read_exact_at(&mut header, 0)?;
        let dim = number(&header);
        let row_bytes = 4 + dim * element.bytes();
        let bytes = usize::try_from(file.metadata()?.len())?;
        if !bytes.is_multiple_of(row_bytes) {
            return Err(format!("{bytes} bytes are no whole rows of {dim} numbers").into());
        }
        Self::checked(file, element, (bytes / row_bytes, dim), 0, 4)
    }

    fn npy(file: File) -> Result<Self, Box<dyn Error>> {
        let mut start = [0; 12];
        file.read_exact_at(&mut start, 0)?;
        if !start.starts_with(b"\x93NUMPY") {
            return Err("not an npy file".into());
        }
        let (at, len) = match start[6] {
            1 => (10, usize::from(u16::from_le_bytes([start[8], start[9]]))),
            2 | 3 => (12, number(&start[8..])),
            version => return Err(format!("npy version {version} is not known").into()),
        };
        if len > NPY_HEADER_MAX {
            return Err(format!("a header of {len} bytes, at most {NPY_HEADER_MAX}").into());
        }
        let mut header = vec![0; len];
        file.read_exact_at(&mut header, at as u64)?;
        let header = String::from_utf8_lossy(&header);
        let kinds = [
            ("<f4", Element::F32),
            ("<f2", Element::F16),
            ("<i4", Element::I32),
            ("|i1", Element::I8),
            ("|u1", Element::U8),
        ];
        let kind = kinds.iter().find(|(name, _)| header.contains(name));
        let (_, element) = kind.ok_or("numbers are none of f4, f2, i4, i1, u1")?;
        if header.contains("'fortran_order': True") {
            return Err("columns first; save it with numpy.ascontiguousarray".into());
        }
        let inside = header.split_once('(').and_then(|(_, s)| s.split_once(')'));
        let shape = inside.map_or("", |(shape, _)| shape).split(',');
        let shape: Vec<usize> = shape.filter_map(|n| n.trim().parse().ok()).collect();
        let [count, dim] = shape[..] else {
            return Err("not an array of rows".into());
        };
        Self::checked(file, *element, (count, dim), at + len, 0)
    }

    fn checked(
        file: File,
        element: Element,
        (count, dim): (usize, usize),
        header: usize,
        prefix: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let row_bytes = prefix as u128 + dim as u128 * element.bytes() as u128;
        let wanted = header as u128 + count as u128 * row_bytes;
        let bytes = u128::from(file.metadata()?.len());
        if dim == 0 || bytes < wanted {
            return Err(format!(
                "{count} rows of {dim} numbers need {wanted} bytes, there are {bytes}"
            )
            .into());
        }
        Ok(Self {
            file,
            element,
            dim,
            count,
            header,
            prefix,
            is_dithered: false,
        })
    }
}

impl Rows for FileRows {
    fn dim(&self) -> usize {
        self.dim
    }

    fn count(&self) -> usize {
        self.count
    }

    fn read(&self, first: usize, out: &mut [f32]) -> io::Result<()> {
        let row_bytes = self.prefix + self.dim * self.element.bytes();
        let count = out.len() / self.dim;
        let mut bytes = vec![0; count * row_bytes];
        let at = self.header + first * row_bytes;
        self.file.read_exact_at(&mut bytes, at as u64)?;
        let rows = bytes.chunks_exact(row_bytes).map(|row| &row[self.prefix..]);
        for (index, (row, out)) in rows.zip(out.chunks_exact_mut(self.dim)).enumerate() {
            self.element.decode(row, out);
            if self.is_dithered {
                let start = ((first + index) * self.dim) as u64;
                for (place, x) in (start..).zip(out) {
                    *x += (splitmix64(place) >> 40) as f32 / (1 << 24) as f32 - 0.5;
                }
            }
        }
        Ok(())
    }
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::F16 => 2,
            Self::I8 | Self::U8 => 1,
        }
    }

    fn decode(self, bytes: &[u8], out: &mut [f32]) {
        let (fours, twos) = (bytes.as_chunks::<4>().0, bytes.as_chunks::<2>().0);
        match self {
            Self::F32 => fill(out, fours.iter().map(|b| f32::from_le_bytes(*b))),
            Self::I32 => fill(out, fours.iter().map(|b| i32::from_le_bytes(*b) as f32)),
            Self::F16 => fill(out, twos.iter().map(|b| half(u16::from_le_bytes(*b)))),
            Self::I8 => fill(out, bytes.iter().map(|&b| f32::from(b as i8))),
            Self::U8 => fill(out, bytes.iter().map(|&b| f32::from(b))),
        }
    }
}

fn fill(out: &mut [f32], values: impl Iterator<Item = f32>) {
    for (slot, value) in out.iter_mut().zip(values) {
        *slot = value;
    }
}

/// A u32 at the start of `bytes`, which has four.
fn number(bytes: &[u8]) -> usize {
    let four = bytes.first_chunk::<4>().copied().unwrap_or_default();
    u32::from_le_bytes(four) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(name: &str, bytes: &[u8]) -> Result<FileRows, Box<dyn Error>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        FileRows::open(&path)
    }

    fn rows(name: &str, bytes: &[u8]) -> Vec<f32> {
        let rows = open(name, bytes).unwrap();
        let mut out = vec![0.0; rows.count() * rows.dim()];
        rows.read(0, &mut out).unwrap();
        let mut last = vec![0.0; rows.dim()];
        rows.read(rows.count() - 1, &mut last).unwrap();
        assert!(out.ends_with(&last));
        out
    }

    fn npy(kind: &str, body: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (2, 2), }}\n");
        let len = u16::try_from(header.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), body].concat()
    }

    #[test]
    fn every_format_reads_as_the_numbers_it_holds() {
        let two = 2u32.to_le_bytes();
        let floats: Vec<u8> = [1.5f32, -2.0, 3.0, 4.0]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        let ints: Vec<u8> = [7i32, -8, 9, 10]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        let halves: Vec<u8> = [0x3C00u16, 0xC000, 0, 0x3C00]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        let bin = |body: &[u8]| [&two, &two, body].concat();
        let vecs = |body: &[u8]| {
            let rows = body.chunks(body.len() / 2);
            rows.flat_map(|row| [&two, row].concat())
                .collect::<Vec<u8>>()
        };
        let f = [1.5, -2.0, 3.0, 4.0];
        assert_eq!(rows("a.fbin", &bin(&floats)), f);
        assert_eq!(rows("a.fvecs", &vecs(&floats)), f);
        assert_eq!(rows("a.npy", &npy("<f4", &floats)), f);
        let i = [7.0, -8.0, 9.0, 10.0];
        assert_eq!(rows("a.ibin", &bin(&ints)), i);
        assert_eq!(rows("a.ivecs", &vecs(&ints)), i);
        assert_eq!(rows("a.npy", &npy("<i4", &ints)), i);
        let b = [1u8, 255, 3, 4];
        assert_eq!(rows("a.u8bin", &bin(&b)), [1.0, 255.0, 3.0, 4.0]);
        assert_eq!(rows("a.bvecs", &vecs(&b)), [1.0, 255.0, 3.0, 4.0]);
        assert_eq!(rows("a.i8bin", &bin(&b)), [1.0, -1.0, 3.0, 4.0]);
        assert_eq!(rows("a.npy", &npy("|i1", &b)), [1.0, -1.0, 3.0, 4.0]);
        assert_eq!(rows("a.npy", &npy("<f2", &halves)), [1.0, -2.0, 0.0, 1.0]);
    }

    #[test]
    fn a_file_that_is_cut_or_of_another_kind_is_refused_with_the_reason() {
        let cut = [&100u32.to_le_bytes()[..], &3u32.to_le_bytes(), &[0; 8]].concat();
        for (name, bytes, fault) in [
            (
                "a.fbin",
                cut.as_slice(),
                "100 rows of 3 numbers need 1208 bytes, there are 16",
            ),
            ("a.fvecs", &[2, 0, 0, 0, 1][..], "no whole rows"),
            ("a.npy", b"no numpy file", "not an npy file"),
            ("a.npy", &npy("<f8", &[0; 32]), "none of f4"),
            ("a.csv", b"1,2", "`.csv` is none of"),
            ("a.fbin", b"", "failed to fill"),
        ] {
            let text = open(name, bytes).unwrap_err().to_string();
            assert!(text.contains(fault), "{name}: {text}");
        }
    }
}
