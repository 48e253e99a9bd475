//! Originals and codes of the output.
//!
//! Inputs have centres of their own, so their codes cannot be compared with one another. Where all have
//! the same one the codes are copied; else the rows are encoded afresh around the mean of the centres,
//! some microseconds a row against the hundreds that a row's links cost.

use bytemuck::Pod;
use flatwater_index::Row;
use flatwater_index::codes::{Encoder, record};

use super::{Merger, SealError, Step};
use crate::file::Kind;
use crate::mapped::MappedWriter;
use crate::parts::column::{CENTER_ROWS, ColumnCodes, VectorColumn, mean_of};
use crate::parts::spec::VectorSpec;
use crate::rows::Rows;
use crate::sealed::layout::{self, VectorFacts};

/// Where the codes of the output come from.
enum Source {
    /// From the inputs: all were made around this centre.
    Copied(Vec<f32>),
    /// From the originals, around this centre.
    Made(Vec<f32>),
}

impl Merger<'_> {
    pub(super) fn vector(&self, index: usize) -> Result<VectorFacts, SealError> {
        let spec = &self.spec.vectors[index];
        let name = layout::originals_name(index);
        self.copy(
            &name,
            layout::ORIGINALS_KIND,
            spec.dim,
            Step::CopyData,
            |input| Some(self.column(input, index)?.originals()),
        )?;
        let center = if spec.rotation.is_some() && !self.order.is_empty() {
            self.codes(index, spec)?
        } else {
            None
        };
        Ok(VectorFacts {
            dim: spec.dim,
            graph: self.graph(index, spec, center.as_deref())?,
            center,
        })
    }

    pub(super) fn column(&self, input: usize, index: usize) -> Option<&VectorColumn> {
        let column = self.inputs.get(input)?.segment().columns().get(index)?;
        Some(column)
    }

    /// Writes the codes of a vector; answers their centre, none where the vector has no codes.
    fn codes(&self, index: usize, spec: &VectorSpec) -> Result<Option<Vec<f32>>, SealError> {
        match self.source(index, spec) {
            Source::Copied(center) => {
                let step = Step::Codes(&spec.name);
                let (name8, name1) = (layout::codes8_name(index), layout::codes1_name(index));
                let (width8, width1) = (record::stride8(spec.dim), record::stride1(spec.dim));
                self.copy(&name8, layout::CODES8_KIND, width8, step, |input| {
                    Some(self.column(input, index)?.codes()?.codes8())
                })?;
                self.copy(&name1, layout::CODES1_KIND, width1, step, |input| {
                    Some(self.column(input, index)?.codes()?.codes1())
                })?;
                Ok(Some(center))
            }
            Source::Made(center) => {
                let Some(encoder) = spec.encoder(&center) else {
                    return Ok(None);
                };
                self.encode(index, spec, &encoder)?;
                Ok(Some(center))
            }
        }
    }

    fn source(&self, index: usize, spec: &VectorSpec) -> Source {
        let complete = |input: usize| -> Option<&[f32]> {
            let codes: &ColumnCodes = self.column(input, index)?.codes()?;
            let (_, coded) = codes.ready()?;
            codes
                .center()
                .filter(|_| coded >= self.inputs[input].rows_len())
        };
        let used = self.order.by_size().iter().copied();
        let used: Vec<usize> = used.filter(|&i| self.inputs[i].live_count() > 0).collect();
        let centers: Vec<Option<&[f32]>> = used.iter().map(|&input| complete(input)).collect();
        if let Some(Some(first)) = centers.first()
            && centers.iter().all(|center| *center == Some(*first))
        {
            return Source::Copied(first.to_vec());
        }
        let mut sums = vec![0.0f64; spec.dim];
        let mut weight = 0.0f64;
        for (&input, center) in used.iter().zip(&centers) {
            if let Some(center) = center {
                let rows = self.inputs[input].live_count() as f64;
                weight += rows;
                for (sum, x) in sums.iter_mut().zip(*center) {
                    *sum += rows * f64::from(*x);
                }
            }
        }
        if weight == 0.0 {
            return Source::Made(self.mean_of_first_rows(index, spec));
        }
        Source::Made(sums.iter().map(|sum| (sum / weight) as f32).collect())
    }

    /// Mean of the first rows that have the vector, where no input has a centre.
    fn mean_of_first_rows(&self, index: usize, spec: &VectorSpec) -> Vec<f32> {
        let first = self.order.taken().take(CENTER_ROWS as usize);
        let originals = first.filter_map(|(input, row)| {
            let column = self.column(input, index)?;
            let has_it = column.has(row, self.inputs[input].watermark());
            has_it.then(|| column.originals().row(row))
        });
        mean_of(spec.dim, originals)
    }

    fn encode(&self, index: usize, spec: &VectorSpec, encoder: &Encoder) -> Result<(), SealError> {
        let (width8, width1) = (record::stride8(spec.dim), record::stride1(spec.dim));
        let rows = self.order.len().into();
        let (name8, name1) = (layout::codes8_name(index), layout::codes1_name(index));
        let mut file8 = MappedWriter::create(self.dir, &name8, layout::CODES8_KIND, width8, rows)?;
        let mut file1 = MappedWriter::create(self.dir, &name1, layout::CODES1_KIND, width1, rows)?;
        let (mut record8, mut record1) = (vec![0; width8], vec![0; width1]);
        let zeros = vec![0.0; spec.dim];
        for (at, (input, row)) in (0..).zip(self.order.taken()) {
            self.look(Step::Codes(&spec.name), at)?;
            let original = match self.column(input, index) {
                Some(column) => column.originals().row(row),
                None => &zeros,
            };
            encoder.encode(&encoder.rotate(original), &mut record8, &mut record1);
            file8.push(&record8);
            file1.push(&record1);
        }
        file8.finish()?;
        Ok(file1.finish()?)
    }

    /// Copies rows of each input, zeros where an input has none.
    fn copy<'b, T: Pod>(
        &'b self,
        name: &str,
        kind: Kind,
        width: usize,
        step: Step<'_>,
        rows_of: impl Fn(usize) -> Option<&'b Rows<T>>,
    ) -> Result<(), SealError> {
        let mut file = MappedWriter::create(self.dir, name, kind, width, self.order.len().into())?;
        let inputs: Vec<Option<&Rows<T>>> = (0..self.inputs.len()).map(rows_of).collect();
        let zeros = vec![T::zeroed(); width];
        for (at, (input, row)) in (0..).zip(self.order.taken()) {
            self.look(step, at)?;
            let row: Row = row;
            file.push(inputs[input].map_or(zeros.as_slice(), |rows| rows.row(row)));
        }
        Ok(file.finish()?)
    }
}
