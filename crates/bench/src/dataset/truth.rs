//! Exact answers: every row is compared with every query, on all cores, once.
//!
//! While rows arrive, the right answer is that over the rows acknowledged so far. Rows are loaded in
//! their order, so those are the first `n`, and one pass gives the answers of all moments: at each
//! `n` asked for ("cut") what is best so far is set down.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use flatwater_index::distance::kernels;
use flatwater_index::topk::TopK;

use super::Dataset;

/// Rows that a thread takes at once.
const BLOCK: usize = 512;

/// What is asked for.
pub(crate) struct Question<'a> {
    /// Best so many.
    pub(crate) k: usize,
    /// The first so many queries.
    pub(crate) queries: usize,
    /// Numbers of rows after which answers are set down, ascending.
    pub(crate) cuts: &'a [usize],
    /// Which rows count for which query.
    pub(crate) counts: &'a (dyn Fn(usize, u64) -> bool + Sync),
    /// Name of `counts`, for the cache: the same name must mean the same rows.
    pub(crate) label: &'a str,
}

/// Rows by query, best first, for one cut.
pub(crate) type Answers = Vec<Vec<u64>>;

/// Answers of all cuts, from the cache if they are there.
pub(crate) fn of(
    set: &Dataset,
    question: &Question<'_>,
    cache: Option<&Path>,
) -> Result<Vec<Answers>, Box<dyn Error>> {
    let key = key(set, question)?;
    let file = cache.map(|folder| folder.join(format!("truth-{:016x}", fingerprint(&key))));
    if let Some(file) = &file
        && let Some(answers) = read(file, &key, question)
    {
        return Ok(answers);
    }
    let answers = compute(set, question)?;
    if let (Some(folder), Some(file)) = (cache, &file) {
        fs::create_dir_all(folder)?;
        fs::write(file, written(&key, &answers))?;
    }
    Ok(answers)
}

fn compute(set: &Dataset, question: &Question<'_>) -> Result<Vec<Answers>, Box<dyn Error>> {
    let mut best = vec![TopK::new(question.k); question.queries];
    let mut answers = Vec::new();
    let mut from = 0;
    for &cut in question.cuts {
        let to = cut.min(set.count());
        for (best, part) in best.iter_mut().zip(parts(set, question, from..to)?) {
            for (score, row) in part.into_sorted_vec() {
                best.push(score, row);
            }
        }
        from = from.max(to);
        let rows = |best: &TopK<u64>| {
            let sorted = best.clone().into_sorted_vec();
            sorted.into_iter().map(|(_, row)| row).collect()
        };
        answers.push(best.iter().map(rows).collect());
    }
    Ok(answers)
}

/// Best rows of a range, by query.
fn parts(
    set: &Dataset,
    question: &Question<'_>,
    range: std::ops::Range<usize>,
) -> Result<Vec<TopK<u64>>, Box<dyn Error>> {
    let next = AtomicUsize::new(range.start);
    let work = || -> std::io::Result<Vec<TopK<u64>>> {
        let mut best = vec![TopK::new(question.k); question.queries];
        let mut rows = vec![0.0; BLOCK * set.dim()];
        loop {
            let first = next.fetch_add(BLOCK, Ordering::Relaxed);
            let count = range.end.saturating_sub(first).min(BLOCK);
            if count == 0 {
                return Ok(best);
            }
            let rows = &mut rows[..count * set.dim()];
            set.read(first, rows)?;
            for (at, best) in best.iter_mut().enumerate() {
                let query = set.query(at);
                for (id, row) in (first as u64..).zip(rows.chunks_exact(set.dim())) {
                    if (question.counts)(at, id) {
                        best.push(kernels().score(set.metric, query, row), id);
                    }
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = running.into_iter().map(|thread| match thread.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<std::io::Result<Vec<_>>>()
    })?;
    let mut all = vec![TopK::new(question.k); question.queries];
    for best in found {
        for (all, best) in all.iter_mut().zip(best) {
            for (score, id) in best.into_sorted_vec() {
                all.push(score, id);
            }
        }
    }
    Ok(all)
}

/// Share of the right answer that was found, when rows may have come in since the moment of the cut
/// (or are of another kind): `is_known` tells those that the answer is about. A newer row that was
/// found takes the place of the worst right one, which is then not asked for.
pub(crate) fn recall(found: &[u64], right: &[u64], is_known: impl Fn(u64) -> bool) -> f64 {
    let newer = found.iter().filter(|id| !is_known(**id)).count();
    let wanted = &right[..right.len().saturating_sub(newer)];
    if wanted.is_empty() {
        return 1.0;
    }
    let hits = wanted.iter().filter(|id| found.contains(id)).count();
    hits as f64 / wanted.len() as f64
}

/// Everything that the answers depend on; of the rows the first and the last.
fn key(set: &Dataset, question: &Question<'_>) -> std::io::Result<String> {
    let mut ends = vec![0.0; 2 * set.dim()];
    let (first, last) = ends.split_at_mut(set.dim());
    set.read(0, first)?;
    set.read(set.count() - 1, last)?;
    ends.extend_from_slice(&set.queries);
    let bits = ends.iter().map(|x| u64::from(x.to_bits()));
    Ok(format!(
        "{} {:?} {} rows {} dims {:x} k {} queries {} cuts {:?} {}\n",
        set.name,
        set.metric,
        set.count(),
        set.dim(),
        hash(bits),
        question.k,
        question.queries,
        question.cuts,
        question.label,
    ))
}

/// FNV-1a over words.
fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xCBF2_9CE4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0100_0000_01B3)
    })
}

fn fingerprint(key: &str) -> u64 {
    hash(key.bytes().map(u64::from))
}

/// The key, then for each cut and query the number of rows and the rows.
fn written(key: &str, answers: &[Answers]) -> Vec<u8> {
    let mut bytes = key.as_bytes().to_vec();
    for rows in answers.iter().flatten() {
        bytes.extend((rows.len() as u64).to_le_bytes());
        bytes.extend(rows.iter().flat_map(|row| row.to_le_bytes()));
    }
    bytes
}

/// `None` if the file is not there, of another question, or not whole.
fn read(file: &Path, key: &str, question: &Question<'_>) -> Option<Vec<Answers>> {
    let bytes = fs::read(file).ok()?;
    let (words, rest) = bytes.strip_prefix(key.as_bytes())?.as_chunks::<8>();
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    let mut answers = Vec::new();
    for _ in question.cuts {
        let mut of_cut = Vec::new();
        for _ in 0..question.queries {
            let count = usize::try_from(words.next()?).ok()?;
            let rows: Vec<u64> = words.by_ref().take(count).collect();
            (rows.len() == count).then_some(())?;
            of_cut.push(rows);
        }
        answers.push(of_cut);
    }
    (rest.is_empty() && words.next().is_none()).then_some(answers)
}

#[cfg(test)]
mod tests {
    use super::super::tests::words;
    use super::*;

    fn question<'a>(
        cuts: &'a [usize],
        counts: &'a (dyn Fn(usize, u64) -> bool + Sync),
    ) -> Question<'a> {
        Question {
            k: 3,
            queries: 5,
            cuts,
            counts,
            label: "",
        }
    }

    /// By sorting all scores, which is another way.
    fn slow(set: &Dataset, cut: usize, query: usize, counts: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut rows = vec![0.0; cut * set.dim()];
        set.read(0, &mut rows).unwrap();
        let dot =
            |row: &[f32]| -> f32 { row.iter().zip(set.query(query)).map(|(a, b)| a * b).sum() };
        let scored = (0u64..).zip(rows.chunks(set.dim()).map(dot));
        let mut scored: Vec<_> = scored.filter(|(id, _)| counts(*id)).collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1));
        scored.iter().take(3).map(|(id, _)| *id).collect()
    }

    #[test]
    fn each_cut_has_the_exact_answer_over_the_rows_before_it() {
        let set = words(1500);
        let answers = compute(&set, &question(&[2, 700, 1500], &|_, _| true)).unwrap();
        for (cut, answers) in [2, 700, 1500].into_iter().zip(&answers) {
            for (query, answer) in answers.iter().enumerate() {
                assert_eq!(*answer, slow(&set, cut, query, |_| true), "{cut} {query}");
            }
        }
        let odd = compute(&set, &question(&[1500], &|_, id| id % 2 == 1)).unwrap();
        assert_eq!(odd[0][4], slow(&set, 1500, 4, |id| id % 2 == 1));
    }

    #[test]
    fn the_cache_gives_what_was_computed_and_never_that_of_another_question() {
        let folder = tempfile::tempdir().unwrap();
        let set = words(300);
        let all = |_: usize, _: u64| true;
        let first = of(&set, &question(&[100, 300], &all), Some(folder.path())).unwrap();
        // What is read must be the file: rows that nobody counts would give nothing.
        let none = |_: usize, _: u64| false;
        let again = of(&set, &question(&[100, 300], &none), Some(folder.path())).unwrap();
        assert_eq!(first, again);
        let other = of(&set, &question(&[100, 200], &none), Some(folder.path())).unwrap();
        assert!(other.iter().flatten().all(Vec::is_empty));
        for file in fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        }
        let cut = of(&set, &question(&[100, 300], &all), Some(folder.path())).unwrap();
        assert_eq!(first, cut);
    }

    #[test]
    fn a_row_that_came_in_since_takes_the_place_of_the_worst_right_one() {
        let old = |id: u64| id < 100;
        assert_eq!(recall(&[1, 2, 3], &[1, 2, 3], old), 1.0);
        assert_eq!(recall(&[100, 1, 2], &[1, 2, 3], old), 1.0);
        assert_eq!(recall(&[100, 1, 9], &[1, 2, 3], old), 0.5);
        assert_eq!(recall(&[], &[1, 2], old), 0.0);
        assert_eq!(recall(&[100, 101], &[1, 2], old), 1.0);
    }
}
