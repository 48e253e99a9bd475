//! Which small sealed segments become one.
//!
//! While there are more sealed segments than aimed for, the smallest that together fit into one are
//! joined, no more of them than the count calls for. So each join lowers the count, a segment at the
//! limit is never written again, and the wish list is empty once the count is met or nothing fits.

use uuid::Uuid;

use super::facts::{Limits, SegmentFacts};

/// Groups to join, each of two or more.
#[must_use]
pub fn wishes(segments: &[SegmentFacts], limits: &Limits) -> Vec<Vec<Uuid>> {
    let sealed = segments.iter().filter(|segment| segment.is_sealed);
    let mut count = sealed.clone().count();
    let mut free: Vec<&SegmentFacts> = sealed.filter(|segment| !segment.is_busy).collect();
    free.sort_by_key(|segment| (segment.live, segment.segment));
    let mut groups = Vec::new();
    let mut rest = free.as_slice();
    while count > limits.segments_target {
        let most = count - limits.segments_target + 1;
        let mut rows = 0u64;
        let fits = rest.iter().take(most).take_while(|segment| {
            rows = rows.saturating_add(segment.live);
            rows <= limits.rows_max
        });
        let group: Vec<Uuid> = fits.map(|segment| segment.segment).collect();
        if group.len() < 2 {
            break;
        }
        count -= group.len() - 1;
        rest = &rest[group.len()..];
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMITS, sealed};
    use super::*;

    fn ids(groups: Vec<Vec<Uuid>>) -> Vec<Vec<u128>> {
        let numbers = |group: Vec<Uuid>| group.iter().map(Uuid::as_u128).collect();
        groups.into_iter().map(numbers).collect()
    }

    #[test]
    fn the_smallest_are_joined_until_the_count_is_met() {
        let segments = [
            sealed(1, 500, 500),
            sealed(2, 30, 30),
            sealed(3, 20, 20),
            sealed(4, 10, 10),
        ];
        let limits = Limits {
            segments_target: 2,
            ..LIMITS
        };
        assert_eq!(ids(wishes(&segments, &limits)), [[4, 3, 2]]);
        assert!(wishes(&segments[..2], &limits).is_empty());
    }

    #[test]
    fn what_does_not_fit_into_one_segment_is_left_alone() {
        let segments = [
            sealed(1, 700, 700),
            sealed(2, 600, 600),
            sealed(3, 500, 500),
            sealed(4, 400, 400),
        ];
        let limits = Limits {
            segments_target: 1,
            rows_max: 1000,
            ..LIMITS
        };
        assert_eq!(ids(wishes(&segments, &limits)), [[4, 3]]);
        assert!(wishes(&segments[..3], &limits).is_empty());
    }

    #[test]
    fn a_busy_segment_counts_and_is_not_taken() {
        let mut segments = [sealed(1, 10, 10), sealed(2, 10, 10), sealed(3, 10, 10)];
        segments[0].is_busy = true;
        let limits = Limits {
            segments_target: 1,
            ..LIMITS
        };
        assert_eq!(ids(wishes(&segments, &limits)), [[2, 3]]);
    }
}
