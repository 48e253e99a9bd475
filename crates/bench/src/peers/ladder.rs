//! The arithmetic of the comparison: medians, recall, and a rate at a given recall.

/// One rung of the ladder: what a search width gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rung {
    pub(crate) ef: usize,
    pub(crate) recall: f64,
    /// Searches a second.
    pub(crate) rate: f64,
}

/// The middle value; of an even number the mean of the two in the middle. `None` of none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], upper)
    } else {
        upper
    })
}

/// Searches a second at `recall`, on the straight line between the two rungs around it.
///
/// `None` where no rung reaches the recall, or where the lowest is above it already: a ladder says
/// nothing beyond its ends.
pub(crate) fn rate_at(rungs: &[Rung], recall: f64) -> Option<f64> {
    let mut sorted = rungs.to_vec();
    sorted.sort_by_key(|rung| rung.ef);
    let pair = sorted
        .windows(2)
        .find(|pair| pair[0].recall <= recall && recall <= pair[1].recall)?;
    let (low, high) = (pair[0], pair[1]);
    let span = high.recall - low.recall;
    let share = if span > 0.0 {
        (recall - low.recall) / span
    } else {
        0.0
    };
    Some(low.rate + share * (high.rate - low.rate))
}

/// Share of the true rows that were found, over all queries of `k` rows each.
pub(crate) fn recall(found: &[u32], truth: &[u32], k: usize) -> f64 {
    let hits = found.chunks(k).zip(truth.chunks(k)).map(|(found, truth)| {
        let hit = |row: &&u32| found.contains(row);
        truth.iter().filter(hit).count()
    });
    hits.sum::<usize>() as f64 / truth.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(ef: usize, recall: f64, rate: f64) -> Rung {
        Rung { ef, recall, rate }
    }

    #[test]
    fn the_median_is_the_middle_and_between_two_their_mean() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0]), Some(3.0));
        assert_eq!(median([9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median([4.0, 1.0, 2.0, 100.0]), Some(3.0));
    }

    #[test]
    fn a_rate_lies_on_the_line_between_the_rungs_around_the_recall() {
        let ladder = [
            rung(64, 0.98, 4000.0),
            rung(16, 0.90, 12000.0),
            rung(32, 0.96, 8000.0),
        ];
        assert_eq!(rate_at(&ladder, 0.98), Some(4000.0));
        assert_eq!(rate_at(&ladder, 0.90), Some(12000.0));
        let between = rate_at(&ladder, 0.97).unwrap();
        assert!((between - 6000.0).abs() < 1e-6, "{between}");
    }

    #[test]
    fn beyond_the_ends_of_the_ladder_there_is_no_rate() {
        let ladder = [rung(16, 0.90, 12000.0), rung(32, 0.96, 8000.0)];
        assert_eq!(rate_at(&ladder, 0.97), None);
        assert_eq!(rate_at(&ladder, 0.89), None);
        assert_eq!(rate_at(&[], 0.9), None);
    }

    #[test]
    fn recall_counts_true_rows_in_any_order() {
        let truth = [1, 2, 3, 4, 5, 6];
        assert_eq!(recall(&[3, 2, 1, 6, 9, u32::MAX], &truth, 3), 4.0 / 6.0);
        assert_eq!(recall(&truth, &truth, 3), 1.0);
    }
}
