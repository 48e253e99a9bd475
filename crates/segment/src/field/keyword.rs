//! The keywords of one block, sorted, with the rows of each.

use flatwater_index::Row;

use super::postings::{Postings, PostingsBuilder};

/// Sorted, distinct keywords and their rows.
#[derive(Debug)]
pub(crate) struct KeywordColumn {
    /// All keywords, one after the other.
    text: Box<str>,
    /// Where each ends in `text`.
    ends: Box<[usize]>,
    pub(crate) postings: Postings,
}

impl KeywordColumn {
    /// Bytes of memory that it takes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let keys = self.text.len() + size_of_val::<[usize]>(&self.ends);
        keys as u64 + self.postings.heap_bytes()
    }

    /// From (keyword, row) pairs sorted by both.
    pub(crate) fn new<K: AsRef<str>>(pairs: &[(K, u16)], block_len: Row) -> Self {
        let mut text = String::new();
        let mut ends = Vec::new();
        let mut postings = PostingsBuilder::new(block_len);
        for same in pairs.chunk_by(|a, b| a.0.as_ref() == b.0.as_ref()) {
            text.push_str(same[0].0.as_ref());
            ends.push(text.len());
            same.iter().for_each(|(_, row)| postings.push(*row));
            postings.end_value();
        }
        Self {
            text: text.into(),
            ends: ends.into(),
            postings: postings.finish(),
        }
    }

    /// The column of consecutive blocks put together; `parts` gives each with its first row.
    pub(crate) fn merged(parts: &[(u16, &Self)], block_len: Row) -> Self {
        let mut pairs = Vec::new();
        for (first_row, part) in parts {
            for value in 0..part.ends.len() {
                part.postings
                    .for_each_row(value, |row| pairs.push((part.key(value), row + first_row)));
            }
        }
        // Stable, and the parts came in the order of their rows: rows stay ascending.
        pairs.sort_by_key(|(key, _)| *key);
        Self::new(&pairs, block_len)
    }

    /// Number of `keyword` among the block's values.
    pub(crate) fn find(&self, keyword: &str) -> Option<usize> {
        let (mut from, mut to) = (0, self.ends.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            match self.key(middle).cmp(keyword) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    fn key(&self, value: usize) -> &str {
        let start = if value == 0 { 0 } else { self.ends[value - 1] };
        &self.text[start..self.ends[value]]
    }
}
