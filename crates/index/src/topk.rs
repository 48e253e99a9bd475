//! The best k of a stream of scored items, in a bounded heap with a total order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Entries allocated ahead at most: `k` comes from a request and may be anything.
const PREALLOCATED_MAX: usize = 1 << 10;

/// Keeps the best `k` of what is pushed: by score descending, NaN after every number, then by
/// item ascending. The order is total, so the result does not depend on the order of the pushes.
///
/// Cost: O(log k) for an item that enters, one comparison for one that does not; memory grows
/// with what was pushed, never with `k`.
#[derive(Clone, Debug)]
pub struct TopK<T: Ord + Copy> {
    k: usize,
    /// The worst entry is on top.
    heap: BinaryHeap<Entry<T>>,
}

impl<T: Ord + Copy> TopK<T> {
    /// An empty collection of at most `k` items.
    #[must_use]
    pub fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::with_capacity(k.min(PREALLOCATED_MAX)),
        }
    }

    /// Offers one item; returns whether it is among the best `k` so far.
    #[inline]
    pub fn push(&mut self, score: f32, item: T) -> bool {
        let entry = Entry { score, item };
        if self.heap.len() < self.k {
            self.heap.push(entry);
            return true;
        }
        match self.heap.peek_mut() {
            Some(mut worst) if entry < *worst => {
                *worst = entry;
                true
            }
            _ => false,
        }
    }

    /// A score below this one cannot enter; an equal one may, by its item.
    ///
    /// Negative infinity while there is room (or while the worst is NaN), positive infinity if
    /// `k` is 0.
    #[inline]
    #[must_use]
    pub fn threshold(&self) -> f32 {
        if self.heap.len() < self.k {
            return f32::NEG_INFINITY;
        }
        match self.heap.peek() {
            Some(worst) if worst.score.is_nan() => f32::NEG_INFINITY,
            Some(worst) => worst.score,
            None => f32::INFINITY,
        }
    }

    /// How many items are held, at most `k`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Whether `k` items are held, so that a new one enters only in place of another.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.heap.len() >= self.k
    }

    /// The items with their scores, best first.
    #[must_use]
    pub fn into_sorted_vec(self) -> Vec<(f32, T)> {
        self.heap
            .into_sorted_vec()
            .into_iter()
            .map(|entry| (entry.score, entry.item))
            .collect()
    }
}

/// Ordered so that the better entry is the smaller one.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    score: f32,
    item: T,
}

impl<T: Ord> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = match (self.score.is_nan(), other.score.is_nan()) {
            (false, false) => other
                .score
                .partial_cmp(&self.score)
                .unwrap_or(Ordering::Equal),
            (self_nan, other_nan) => self_nan.cmp(&other_nan),
        };
        by_score.then_with(|| self.item.cmp(&other.item))
    }
}

impl<T: Ord> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T: Ord> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(k: usize, pushed: &[(f32, u32)]) -> Vec<(f32, u32)> {
        let mut best = TopK::new(k);
        for &(score, item) in pushed {
            best.push(score, item);
        }
        best.into_sorted_vec()
    }

    #[test]
    fn an_unbounded_k_allocates_only_for_what_is_pushed() {
        let mut best = TopK::new(usize::MAX);
        assert!(best.heap.capacity() <= PREALLOCATED_MAX);
        assert!(best.is_empty() && best.threshold() == f32::NEG_INFINITY);
        assert!(best.push(1.0, 7u64) && best.push(2.0, 9));
        assert!(!best.is_full());
        assert_eq!(best.into_sorted_vec(), [(2.0, 9), (1.0, 7)]);
    }

    #[test]
    fn nothing_enters_when_k_is_zero() {
        let mut best = TopK::new(0);
        assert!(!best.push(f32::INFINITY, 1u32));
        assert_eq!((best.len(), best.threshold()), (0, f32::INFINITY));
    }

    #[test]
    fn nan_comes_last_whatever_its_sign_and_gives_way() {
        let pushed = [
            (-f32::NAN, 1),
            (f32::NAN, 0),
            (f32::NEG_INFINITY, 2),
            (0.5, 3),
        ];
        let order: Vec<u32> = collect(9, &pushed)
            .into_iter()
            .map(|(_, item)| item)
            .collect();
        assert_eq!(order, [3, 2, 0, 1]);
        let mut best = TopK::new(1);
        best.push(f32::NAN, 0u32);
        assert_eq!(best.threshold(), f32::NEG_INFINITY);
        assert!(best.push(f32::NEG_INFINITY, 5));
    }

    #[test]
    fn zeros_of_either_sign_tie() {
        assert_eq!(collect(1, &[(0.0, 4), (-0.0, 3)])[0].1, 3);
    }

    proptest! {
        #[test]
        fn the_best_k_equal_a_full_sort(
            scores in prop::collection::vec((0u8..12, 0u32..40), 0..200),
            k in 0usize..60,
        ) {
            let decode = |s: u8| match s { 0 => f32::NAN, 1 => f32::NEG_INFINITY, s => f32::from(s) };
            let pushed: Vec<(f32, u32)> = scores.iter().map(|&(s, i)| (decode(s), i)).collect();
            let mut sorted = scores.clone();
            sorted.sort_by_key(|&(s, item)| (std::cmp::Reverse(s), item));
            sorted.truncate(k);
            let expected: Vec<(u32, u32)> =
                sorted.iter().map(|&(s, i)| (decode(s).to_bits(), i)).collect();
            let found: Vec<(u32, u32)> =
                collect(k, &pushed).iter().map(|&(s, i)| (s.to_bits(), i)).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_score_below_the_threshold_never_enters(
            scores in prop::collection::vec(0u8..20, 1..100),
            k in 0usize..10,
        ) {
            let mut best = TopK::new(k);
            for (item, score) in scores.into_iter().enumerate() {
                let (score, floor) = (f32::from(score), best.threshold());
                let entered = best.push(score, item);
                prop_assert!(!(entered && score < floor));
                prop_assert!(entered || score <= floor);
            }
        }
    }
}
