//! `flatwater-bench join FOLDER [ROWS]`: graphs joined and healed, beside graphs built anew.
//!
//! 1. **Join**: 3 and 10 equal parts into one, the rows of a part as they come in the file (so that
//!    parts differ) and shuffled (so that they are alike). Builds and joins take turns; either side
//!    encodes all its rows, since a merged segment has a centre of its own.
//! 2. **Heal**: 4 % and 25 % of the rows are deleted; the build anew is over those that are left.
//! 3. **Chain**: to half of the rows 20 parts are joined, one after the other.
//! 4. **Churn**: 100 rounds, in each of which 2 % of the rows are deleted and as many new ones come,
//!    half of them as a small graph of their own and half as rows outside any graph.
//!
//! Ratios are of processor time, which other work on the machine disturbs less, and of the wall.

mod records;
mod work;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use flatwater_index::Row;
use flatwater_index::codes::Rotation;
use flatwater_index::hnsw::{GraphParts, Hnsw, NO_PLACE};

use self::records::Rows;
use self::work::{Cost, build, degree, join, unreachable};
use crate::data::Data;

type Failure = Box<dyn Error>;

/// Turns of each side; the medians are reported.
const REPEATS: usize = 3;
const ROTATION_SEED: u64 = 1;
const BREADTHS: [usize; 3] = [48, 64, 128];
const CHAIN_PARTS: usize = 20;
const CHURN_ROUNDS: usize = 100;
/// Rows of the churned graph, unless half of the data is less: 100 rounds of more take hours.
const CHURN_ROWS_MAX: usize = 10_000;

/// Runs all parts and prints what they measure.
pub(crate) fn run(folder: &str, rows_max: Option<usize>) -> Result<(), Failure> {
    let data = Data::load(Path::new(folder), rows_max.unwrap_or(usize::MAX))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench {
        rotation: Arc::new(Rotation::new(data.dim, ROTATION_SEED)),
        data,
        threads,
    };
    print(&format!(
        "{folder}: {} rows of {} dims, {} queries, {threads} threads; recall@{} at ef {BREADTHS:?}",
        bench.data.rows.len(),
        bench.data.dim,
        bench.data.queries.len(),
        records::K
    ));
    bench.joins()?;
    bench.heals()?;
    bench.chain()?;
    bench.churn()
}

#[allow(clippy::print_stdout, reason = "a report is what this program is for")]
fn print(line: &str) {
    println!("{line}");
}

struct Bench {
    data: Data,
    rotation: Arc<Rotation>,
    threads: usize,
}

impl Bench {
    fn encode(&self, ids: &[u32]) -> Rows {
        Rows::encode(&self.data, &self.rotation, ids, self.threads)
    }

    /// A graph of the given rows of the file, as a segment would have it: with codes of its own.
    fn graph_of(&self, ids: &[u32], seed: u64) -> Result<GraphParts, Failure> {
        Ok(build(&self.encode(ids), seed, self.threads)?.freeze())
    }

    fn report(&self, name: &str, rows: &Rows, graph: &Hnsw, truth: &[Vec<u32>], more: &str) {
        let recall = BREADTHS.map(|ef| rows.recall(&self.data, graph, truth, ef));
        let [a, b, c] = recall;
        print(&format!(
            "{name:32} recall {a:.4} {b:.4} {c:.4}, {:.1} links, {} unreachable{more}",
            degree(graph, rows.len()),
            unreachable(graph, rows.len()),
        ));
    }

    fn joins(&self) -> Result<(), Failure> {
        let in_order: Vec<u32> = (0..self.data.rows.len() as u32).collect();
        for (order, ids) in [
            ("in order", in_order.clone()),
            ("shuffled", shuffled(in_order, 1)),
        ] {
            let truth = self.encode(&ids).truth(&self.data, self.threads);
            for parts in [3, 10] {
                self.join_parts(&format!("{parts} parts {order}"), &ids, parts, &truth)?;
            }
        }
        Ok(())
    }

    fn join_parts(
        &self,
        name: &str,
        ids: &[u32],
        parts: usize,
        truth: &[Vec<u32>],
    ) -> Result<(), Failure> {
        let chunks = ids.chunks(ids.len().div_ceil(parts));
        let inputs = (1..)
            .zip(chunks)
            .map(|(seed, ids)| self.graph_of(ids, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let all: Vec<Row> = (0..ids.len() as Row).collect();
        let places = all.chunks(ids.len().div_ceil(parts));
        let inputs: Vec<(&GraphParts, &[Row])> = inputs.iter().zip(places).collect();
        self.compare(
            name,
            &|| {
                let rows = self.encode(ids);
                let graph = build(&rows, 0, self.threads)?;
                Ok((rows, graph))
            },
            &|| {
                let rows = self.encode(ids);
                let graph = join(&inputs, &rows, self.threads)?;
                Ok((rows, graph))
            },
            truth,
        )
    }

    fn heals(&self) -> Result<(), Failure> {
        let all: Vec<u32> = (0..self.data.rows.len() as u32).collect();
        let before = self.graph_of(&all, 1)?;
        for percent in [4, 25] {
            let mut left = shuffled(all.clone(), 2);
            left.truncate(all.len() - all.len() * percent / 100);
            left.sort_unstable();
            let mut places = vec![NO_PLACE; all.len()];
            for (place, &id) in (0..).zip(&left) {
                places[id as usize] = place;
            }
            let rows = self.encode(&left);
            let truth = rows.truth(&self.data, self.threads);
            let input = [(&before, places.as_slice())];
            // A vacuum may keep its codes; encoding anew is counted all the same.
            self.compare(
                &format!("{percent} % deleted"),
                &|| {
                    let rows = self.encode(&left);
                    let graph = build(&rows, 0, self.threads)?;
                    Ok((rows, graph))
                },
                &|| {
                    let rows = self.encode(&left);
                    let graph = join(&input, &rows, self.threads)?;
                    Ok((rows, graph))
                },
                &truth,
            )?;
        }
        Ok(())
    }

    /// Both sides in turns.
    fn compare(
        &self,
        name: &str,
        anew: &dyn Fn() -> Result<(Rows, Hnsw), Failure>,
        reuse: &dyn Fn() -> Result<(Rows, Hnsw), Failure>,
        truth: &[Vec<u32>],
    ) -> Result<(), Failure> {
        let (mut costs_anew, mut costs) = (Vec::new(), Vec::new());
        for turn in 0..REPEATS {
            for (side, work, costs) in [
                ("built anew", anew, &mut costs_anew),
                ("from its inputs", reuse, &mut costs),
            ] {
                let (cost, result) = Cost::of(work);
                let (rows, graph) = result?;
                costs.push(cost);
                if turn == 0 {
                    self.report(&format!("{name}, {side}"), &rows, &graph, truth, "");
                }
            }
        }
        let (anew, reuse) = (Cost::median(&costs_anew), Cost::median(&costs));
        print(&format!(
            "{name:32} {:.3}x of the processor time ({:.2} s of {:.2} s), {:.3}x of the wall time",
            reuse.processor / anew.processor,
            reuse.processor,
            anew.processor,
            reuse.wall / anew.wall
        ));
        Ok(())
    }

    fn chain(&self) -> Result<(), Failure> {
        let ids = shuffled((0..self.data.rows.len() as u32).collect(), 3);
        let mut len = ids.len() / 2;
        let mut graph = self.graph_of(&ids[..len], 1)?;
        let part = (ids.len() - len).div_ceil(CHAIN_PARTS).max(1);
        let all: Vec<Row> = (0..ids.len() as Row).collect();
        let mut last = None;
        while len < ids.len() {
            let end = ids.len().min(len + part);
            let next = self.graph_of(&ids[len..end], len as u64)?;
            let rows = self.encode(&ids[..end]);
            let inputs = [(&graph, &all[..len]), (&next, &all[len..end])];
            let joined = join(&inputs, &rows, self.threads)?;
            (graph, len) = (joined.freeze(), end);
            last = Some((rows, joined));
        }
        let Some((rows, joined)) = last else {
            return Ok(());
        };
        let truth = rows.truth(&self.data, self.threads);
        let anew = build(&rows, 0, self.threads)?;
        self.report("20 joins, built anew", &rows, &anew, &truth, "");
        self.report("20 joins, one after the other", &rows, &joined, &truth, "");
        Ok(())
    }

    fn churn(&self) -> Result<(), Failure> {
        let pool = shuffled((0..self.data.rows.len() as u32).collect(), 4);
        let len = CHURN_ROWS_MAX.min(pool.len() / 2);
        let (live, spare) = pool.split_at(len);
        let (mut live, mut spare) = (live.to_vec(), spare.to_vec());
        let mut graph = self.graph_of(&live, 1)?;
        for round in 1..=CHURN_ROUNDS {
            let died = len / 50;
            let order = shuffled((0..len as u32).collect(), 100 + round as u64);
            let mut places = vec![NO_PLACE; len];
            let mut kept: Vec<u32> = order[died..].to_vec();
            kept.sort_unstable();
            for (place, &row) in (0..).zip(&kept) {
                places[row as usize] = place;
            }
            let dead = order[..died].iter().map(|&row| live[row as usize]);
            let fresh: Vec<u32> = spare.drain(..died.min(spare.len())).collect();
            spare.extend(dead);
            let first = kept.len();
            live = kept.iter().map(|&row| live[row as usize]).collect();
            live.extend(&fresh);
            // The graph of the new rows holds the first half of them.
            let small = self.graph_of(&fresh[..fresh.len() / 2], round as u64)?;
            let new: Vec<Row> = (first as Row..live.len() as Row).collect();
            let rows = self.encode(&live);
            let inputs = [(&graph, places.as_slice()), (&small, new.as_slice())];
            let joined = join(&inputs, &rows, self.threads)?;
            if round % 25 == 0 {
                let truth = rows.truth(&self.data, self.threads);
                let anew = build(&rows, 0, self.threads)?;
                self.report(
                    &format!("churn, round {round}, built anew"),
                    &rows,
                    &anew,
                    &truth,
                    "",
                );
                self.report(
                    &format!("churn, round {round}, healed"),
                    &rows,
                    &joined,
                    &truth,
                    "",
                );
            }
            graph = joined.freeze();
        }
        Ok(())
    }
}

/// Fisher and Yates, by the steps of `SplitMix64`.
fn shuffled(mut ids: Vec<u32>, seed: u64) -> Vec<u32> {
    let mut state = seed;
    for i in (1..ids.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ids.swap(i, ((z ^ (z >> 31)) % (i as u64 + 1)) as usize);
    }
    ids
}
