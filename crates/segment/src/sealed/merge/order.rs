//! Which rows a merge takes, in which order, and where each of them went.

use std::cmp::Reverse;

use flatwater_index::Row;

use crate::view::SegmentView;

/// Marks a row that was not taken.
const LEFT_OUT: Row = Row::MAX;

/// The rows of the inputs in the order of the output: the largest input first, each in its own order.
///
/// Memory: 8 bytes for each row taken, 4 for each row there was.
#[derive(Debug)]
pub struct RowOrder {
    /// Input and row, by output row.
    taken: Vec<(u32, Row)>,
    /// Output row by input and row; [`LEFT_OUT`] for rows that were dead.
    places: Vec<Vec<Row>>,
    /// Inputs, the largest first.
    by_size: Vec<usize>,
}

impl RowOrder {
    /// The live rows of `inputs`, which are views of one moment.
    #[must_use]
    pub fn of(inputs: &[SegmentView]) -> Self {
        let mut by_size: Vec<usize> = (0..inputs.len()).collect();
        by_size.sort_by_key(|&input| (Reverse(inputs[input].live_count()), input));
        let live: u64 = inputs.iter().map(SegmentView::live_count).sum();
        let mut taken = Vec::with_capacity(usize::try_from(live).unwrap_or_default());
        let mut places = vec![Vec::new(); inputs.len()];
        for &input in &by_size {
            let view = &inputs[input];
            places[input] = (0..view.rows_len())
                .map(|row| {
                    if !view.is_live(row) {
                        return LEFT_OUT;
                    }
                    taken.push((input as u32, row));
                    (taken.len() - 1) as Row
                })
                .collect();
        }
        Self {
            taken,
            places,
            by_size,
        }
    }

    /// Rows of the output.
    #[must_use]
    pub fn len(&self) -> Row {
        self.taken.len() as Row
    }

    /// Whether nothing was alive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Inputs, the largest first: their rows stand in this order.
    #[must_use]
    pub fn by_size(&self) -> &[usize] {
        &self.by_size
    }

    /// Input and row, by output row.
    pub fn taken(&self) -> impl Iterator<Item = (usize, Row)> + Clone + '_ {
        self.taken.iter().map(|&(input, row)| (input as usize, row))
    }

    /// Input and row that output row `at` was.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn taken_at(&self, at: Row) -> (usize, Row) {
        let (input, row) = self.taken[at as usize];
        (input as usize, row)
    }

    /// Where row `row` of `input` went; none if it was left out.
    #[must_use]
    pub fn place(&self, input: usize, row: Row) -> Option<Row> {
        let place = *self.places.get(input)?.get(row as usize)?;
        (place != LEFT_OUT).then_some(place)
    }
}
