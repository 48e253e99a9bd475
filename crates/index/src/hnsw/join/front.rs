//! The order in which the rows of an input are inserted: breadth first along its own links, through
//! dead rows as well, so that each row comes after a neighbour of its own.

use super::seek::Landed;
use super::source::Input;
use crate::Row;

/// Rows of a chunk: tens of milliseconds of one core, and work for tens of threads.
const CHUNK_ROWS: usize = 1024;

/// Where the walk over an input stands.
#[derive(Debug, Default)]
pub(super) struct Front {
    queue: Vec<Row>,
    head: usize,
    seen: Vec<bool>,
    /// Rows before this are no roots any more.
    roots: Row,
    chunk: Vec<Row>,
    /// Where each row's search ended.
    landed: Vec<Landed>,
}

impl Front {
    pub(super) fn new(input: &Input<'_>) -> Self {
        let rows = input.covered() as usize;
        let mut front = Self {
            seen: vec![false; rows],
            landed: vec![Landed::default(); rows],
            ..Self::default()
        };
        if let Some((entry, _)) = input.entry() {
            front.push(entry);
        }
        front
    }

    /// The next rows, none if all were given out. Each has a neighbour whose chunk was finished,
    /// except for roots. The same until [`finish_chunk`](Self::finish_chunk).
    pub(super) fn chunk(&mut self, input: &Input<'_>) -> &[Row] {
        if !self.chunk.is_empty() {
            return &self.chunk;
        }
        loop {
            while let Some(&row) = self.queue.get(self.head) {
                if self.chunk.len() == CHUNK_ROWS {
                    break;
                }
                self.head += 1;
                match input.place(row) {
                    Some(_) if input.is_linked(row) => self.chunk.push(row),
                    // One that only damage leads to; it is inserted with those left over.
                    Some(_) => {}
                    None => self.expand(input, row),
                }
            }
            if !self.chunk.is_empty() || !self.next_root(input) {
                return &self.chunk;
            }
        }
    }

    /// Takes note of where the rows of the chunk landed, and of their neighbours as rows to come.
    pub(super) fn finish_chunk(&mut self, input: &Input<'_>) {
        let chunk = std::mem::take(&mut self.chunk);
        for &row in &chunk {
            self.expand(input, row);
        }
        // The queue is as long as the input; what is behind the head is of no use.
        if self.head > self.queue.len() / 2 {
            self.queue.drain(..self.head);
            self.head = 0;
        }
    }

    pub(super) fn land(&mut self, row: Row, landed: Landed) {
        self.landed[row as usize] = landed;
    }

    pub(super) fn landed(&self) -> &[Landed] {
        &self.landed
    }

    fn next_root(&mut self, input: &Input<'_>) -> bool {
        while self.roots < input.covered() {
            let row = self.roots;
            self.roots += 1;
            if !self.seen[row as usize] && input.place(row).is_some() && input.is_linked(row) {
                self.push(row);
                return true;
            }
        }
        false
    }

    fn expand(&mut self, input: &Input<'_>, row: Row) {
        input.links(0, row, |linked, _| self.push(linked));
    }

    fn push(&mut self, row: Row) {
        if !std::mem::replace(&mut self.seen[row as usize], true) {
            self.queue.push(row);
        }
    }
}
