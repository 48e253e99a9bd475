//! The point around which a segment's rows are encoded.

/// The mean of `rows`, each of `dim` coordinates; zeros if there are none.
///
/// A growing segment takes its first rows; a merged one a sample of all its inputs' rows, and encodes
/// every original anew: codes of codes would lose a little with each merge.
#[must_use]
pub fn center_of<'a>(dim: usize, rows: impl IntoIterator<Item = &'a [f32]>) -> Vec<f32> {
    let mut sums = vec![0.0_f64; dim];
    let mut count = 0_u64;
    for row in rows {
        count += 1;
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum += f64::from(x);
        }
    }
    let scale = 1.0 / count.max(1) as f64;
    sums.iter().map(|sum| (sum * scale) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_centre_is_the_mean_and_of_nothing_it_is_zero() {
        let rows: [&[f32]; 3] = [&[1.0, -2.0], &[3.0, 0.0], &[5.0, 8.0]];
        assert_eq!(center_of(2, rows), [3.0, 2.0]);
        assert_eq!(center_of(2, []), [0.0, 0.0]);
    }
}
