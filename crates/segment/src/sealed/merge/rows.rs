//! Heads, ids and payload of the output.

use flatwater_index::Row;

use super::{Merger, SealError};
use crate::mapped::MappedWriter;
use crate::points::heads::{HEAD_WORDS, RowHead};
use crate::sealed::merge::Step;
use crate::sealed::{files, layout};

impl Merger<'_> {
    /// Heads keep their `seq`; a row has no previous one, since only the live row of an id is taken.
    pub(super) fn heads(&self) -> Result<(), SealError> {
        let (name, kind) = layout::HEADS;
        let rows = self.order.len();
        let mut file = MappedWriter::create(self.dir, name, kind, HEAD_WORDS, rows.into())?;
        for (at, (input, row)) in (0..).zip(self.order.taken()) {
            self.look(Step::CopyData, at)?;
            let head = self.inputs[input].segment().head(row);
            let head = RowHead {
                previous: None,
                ..head
            };
            file.push(&head.encode());
        }
        Ok(file.finish()?)
    }

    pub(super) fn ids(&self) -> Result<(), SealError> {
        let mut rows: Vec<Row> = (0..self.order.len()).collect();
        rows.sort_unstable_by_key(|&at| {
            let (input, row) = self.order.taken_at(at);
            self.inputs[input].segment().head(row).id
        });
        let (name, kind) = layout::IDS;
        let mut file = MappedWriter::create(self.dir, name, kind, 1, rows.len() as u64)?;
        file.push(&rows);
        Ok(file.finish()?)
    }

    pub(super) fn payload(&self) -> Result<(), SealError> {
        let taken = self.order.taken();
        let rows = taken.map(|(input, row)| (&self.inputs[input], row));
        files::write_payload(self.dir, rows, |at| self.look(Step::CopyData, at))
    }
}
