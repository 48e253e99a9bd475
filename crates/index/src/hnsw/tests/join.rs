//! Graphs put together from others: sound whatever goes in, as good as graphs built anew.

use std::sync::atomic::AtomicI64;

use proptest::prelude::*;

use super::*;
use crate::hnsw::{
    BadPlaces, Cancelled, FrozenGraph, GraphParts, Join, JoinInput, NO_PLACE, Scratch, Source,
};

/// A part of some points: its graph, the points that its rows stand for, and their places.
struct Piece {
    parts: GraphParts,
    rows: Vec<Row>,
    places: Vec<Row>,
}

impl Piece {
    /// A graph over `rows` of `points` of which only the first `covered` are inserted, without those
    /// that `skip` names.
    fn built(
        points: &Points,
        params: Params,
        rows: Vec<Row>,
        covered: Row,
        skip: &(dyn Fn(Row) -> bool + Sync),
    ) -> Self {
        let own = points.only(&rows);
        let graph = Hnsw::new(params, own.len());
        while graph.indexed_len() < covered {
            let next = graph.indexed_len() + graph.next_batch_len(covered - graph.indexed_len());
            graph
                .insert_batch(&own, next, skip, &Inline, &|| false)
                .unwrap();
        }
        Self {
            parts: graph.freeze(),
            places: vec![NO_PLACE; rows.len()],
            rows,
        }
    }

    fn input(&self) -> JoinInput<'_> {
        let parts = &self.parts;
        let graph = FrozenGraph::new(
            parts.m,
            parts.entry,
            &parts.base,
            &parts.upper_start,
            &parts.upper,
        );
        JoinInput {
            source: Source::Frozen {
                graph: graph.unwrap(),
                shapes: &parts.shapes,
            },
            places: &self.places,
        }
    }
}

impl Points {
    fn only(&self, rows: &[Row]) -> Self {
        Self {
            dim: self.dim,
            values: rows
                .iter()
                .flat_map(|&row| self.row(row))
                .copied()
                .collect(),
        }
    }
}

/// Gives places to the rows of `pieces` whose points `live` names, with holes between them. Returns
/// the points by place (those of holes are zeros) and the places.
fn place(
    points: &Points,
    pieces: &mut [Piece],
    live: impl Fn(Row) -> bool,
    random: &mut Random,
) -> (Points, HashSet<Row>) {
    let mut order: Vec<(usize, usize)> = (0..pieces.len())
        .flat_map(|piece| (0..pieces[piece].rows.len()).map(move |row| (piece, row)))
        .filter(|&(piece, row)| live(pieces[piece].rows[row]))
        .collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i + 1));
    }
    let (mut output, mut placed) = (
        Points {
            values: Vec::new(),
            ..*points
        },
        HashSet::new(),
    );
    for (piece, row) in order {
        if random.below(10) == 0 {
            output.values.extend(vec![0.0; points.dim]);
        }
        let place = output.len();
        placed.insert(place);
        pieces[piece].places[row] = place;
        output
            .values
            .extend_from_slice(points.row(pieces[piece].rows[row]));
    }
    (output, placed)
}

fn joined(
    params: Params,
    output: &Points,
    inputs: &[JoinInput<'_>],
    workers: &dyn Workers,
) -> Hnsw {
    ended(
        Join::new(params, output.len(), inputs).unwrap(),
        output,
        workers,
    )
}

fn ended(mut join: Join<'_>, output: &Points, workers: &dyn Workers) -> Hnsw {
    while !join.is_done() {
        join.step(output, workers, &|| false).unwrap();
    }
    let progress = join.progress();
    assert_eq!(progress.done, progress.total);
    join.finish().unwrap()
}

/// `n` rows split into parts of the given weights, in a random order.
fn split(n: Row, weights: &[usize], random: &mut Random) -> Vec<Vec<Row>> {
    let mut parts = vec![Vec::new(); weights.len()];
    let sum: usize = weights.iter().sum();
    for row in 0..n {
        let mut pick = random.below(sum);
        let part = weights.iter().position(|&weight| {
            let here = pick < weight;
            pick = pick.wrapping_sub(weight);
            here
        });
        parts[part.unwrap()].push(row);
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_live_row_is_reachable_whatever_is_joined(
        seed: u64,
        n in prop_oneof![0_u32..12, 50_u32..600],
        (dim, clusters) in (1_usize..5, 1_usize..8),
        spread in prop_oneof![Just(0.0_f32), Just(0.3)],
        weights in proptest::collection::vec(1_usize..20, 1..5),
        (m, ef_construct) in (2_usize..7, 2_usize..30),
        dead_percent in prop_oneof![Just(0_u64), 1_u64..60, Just(100)],
        covered_percent in prop_oneof![Just(100_u32), 0_u32..100],
        (threads, looks_max) in (1_usize..4, 1_i64..400),
        part_rows in prop_oneof![1_usize..100, Just(usize::MAX)],
    ) {
        let mut random = Random(seed);
        let points = Points::clustered(n as usize, dim, clusters, spread, seed);
        let skip = |row: Row| row % 11 == 5;
        let mut pieces: Vec<Piece> = split(n, &weights, &mut random)
            .into_iter()
            .enumerate()
            .map(|(i, rows)| {
                let params = Params { m, ef_construct, seed: seed ^ i as u64 };
                let covered = rows.len() as u32 * covered_percent / 100;
                Piece::built(&points, params, rows, covered, &skip)
            })
            .collect();
        let live = |row: Row| mix(seed ^ u64::from(row)) % 100 >= dead_percent;
        let (output, placed) = place(&points, &mut pieces, live, &mut random);
        let params = Params { m, ef_construct, seed };
        let inputs: Vec<JoinInput<'_>> = pieces.iter().map(Piece::input).collect();
        let begin = || {
            let mut join = Join::new(params, output.len(), &inputs).unwrap();
            join.part_rows = part_rows;
            join
        };
        let mut join = begin();
        let looks = AtomicI64::new(looks_max);
        let mut cancels = 0;
        while !join.is_done() {
            let before = join.progress();
            let cancel = || looks.fetch_sub(1, Ordering::Relaxed) == 0;
            if let Err(Cancelled) = join.step(&output, &Threads(threads), &cancel) {
                prop_assert_eq!(join.progress(), before);
                cancels += 1;
                looks.store(looks_max * (cancels + 1), Ordering::Relaxed);
            }
        }
        prop_assert_eq!(join.progress().done as usize, placed.len());
        let graph = join.finish().unwrap();
        assert_sound(&graph, &placed, output.len());
        // The same without a cancelled step and on one thread.
        let again = ended(begin(), &output, &Inline);
        prop_assert_eq!(fingerprint(&graph, output.len()), fingerprint(&again, output.len()));
    }

    #[test]
    fn damaged_links_and_shapes_make_a_sound_graph_all_the_same(
        seed: u64, n in 2_u32..120, kind in 0_u32..3,
    ) {
        let mut random = Random(seed);
        let points = Points::clustered(n as usize, 3, 3, 0.3, seed);
        let params = Params { m: 4, ef_construct: 12, seed };
        let mut pieces: Vec<Piece> = split(n, &[3, 2], &mut random)
            .into_iter()
            .map(|rows| {
                let len = rows.len() as Row;
                let mut piece = Piece::built(&points, params, rows, len, &|_| false);
                let parts = &mut piece.parts;
                match kind {
                    0 => parts.shapes.clear(),
                    1 => parts.shapes.iter_mut().for_each(|s| *s = random.next() as u32),
                    // Each list names some rows, whether they are there or not, each once.
                    _ => for (i, slot) in parts.base.iter_mut().enumerate() {
                        let place = i as u32 % 8;
                        *slot = (random.below(n as usize / 4 + 2) as u32) * 8 + place;
                    },
                }
                piece
            })
            .collect();
        let live = |row: Row| !row.is_multiple_of(5);
        let (output, placed) = place(&points, &mut pieces, live, &mut random);
        let inputs: Vec<JoinInput<'_>> = pieces.iter().map(Piece::input).collect();
        assert_sound(&joined(params, &output, &inputs, &Inline), &placed, output.len());
    }
}

/// Mean recall@10 of searches for near copies of the rows.
fn recall_of(graph: &Hnsw, points: &Points, live: &HashSet<Row>, ef: usize) -> f64 {
    let (mut random, mut scratch, mut sum) = (Random(3), Scratch::new(), 0.0);
    let mut asked = 0;
    while asked < 200 {
        let row = random.below(points.len() as usize) as Row;
        let query: Vec<f32> = (points.row(row).iter())
            .map(|v| v + 0.1 * random.bell())
            .collect();
        if live.contains(&row) {
            let truth = points.exact(&query, 10, |row| live.contains(&row));
            let found = graph.search(&points.query(&query), ef, &|_| true, &mut scratch);
            sum += recall(&found, &truth);
            asked += 1;
        }
    }
    sum / 200.0
}

fn inserted(points: &Points, params: Params, live: &HashSet<Row>) -> (Hnsw, u64) {
    let graph = Hnsw::new(params, points.len());
    let mut distances = 0;
    while graph.indexed_len() < points.len() {
        let next = graph.indexed_len() + graph.next_batch_len(points.len() - graph.indexed_len());
        let skip = |row: Row| !live.contains(&row);
        distances += graph
            .insert_batch(points, next, &skip, &Inline, &|| false)
            .unwrap()
            .distances;
    }
    (graph, distances)
}

const PARAMS: Params = Params {
    m: 12,
    ef_construct: 80,
    seed: 1,
};

#[test]
fn a_join_finds_what_a_build_finds_for_less() {
    let points = Points::clustered(6000, 32, 20, 1.0, 31);
    for (weights, dead_percent) in [(&[1, 1, 1][..], 0), (&[1; 8][..], 10)] {
        let mut random = Random(7);
        let mut pieces: Vec<Piece> = (split(points.len(), weights, &mut random).into_iter())
            .map(|rows| {
                let len = rows.len() as Row;
                Piece::built(&points, PARAMS, rows, len, &|_| false)
            })
            .collect();
        let live = |row: Row| mix(u64::from(row)) % 100 >= dead_percent;
        let (output, placed) = place(&points, &mut pieces, live, &mut random);
        let inputs: Vec<JoinInput<'_>> = pieces.iter().map(Piece::input).collect();
        let mut join = Join::new(PARAMS, output.len(), &inputs).unwrap();
        while !join.is_done() {
            join.step(&output, &Inline, &|| false).unwrap();
        }
        let distances = join.distances();
        let graph = join.finish().unwrap();
        assert_sound(&graph, &placed, output.len());
        let (anew, effort) = inserted(&output, PARAMS, &placed);
        let (ours, theirs) = (
            recall_of(&graph, &output, &placed, 48),
            recall_of(&anew, &output, &placed, 48),
        );
        println!("{weights:?}: {ours} with {distances}, anew {theirs} with {effort}");
        assert!(ours > theirs - 0.01, "{ours} against {theirs}");
        assert!(distances * 10 < effort * 6, "{distances} against {effort}");
    }
}

#[test]
fn a_healed_graph_finds_what_a_build_finds_round_after_round() {
    let points = Points::clustered(5000, 24, 12, 1.0, 32);
    let mut random = Random(9);
    let rows: Vec<Row> = (0..2000).collect();
    let mut piece = Piece::built(&points, PARAMS, rows, 2000, &|_| false);
    let mut next = 2000;
    for round in 0..20 {
        // 7 of 100 die, about as many come: half in a graph of their own, half outside any.
        let fresh: Vec<Row> = (next..next + 150).collect();
        next += 150;
        let mut pieces = [piece, Piece::built(&points, PARAMS, fresh, 75, &|_| false)];
        let dead = mix(round);
        let first_new = next - 150;
        let is_old = |row: Row| row < first_new && mix(dead ^ u64::from(row)) % 100 >= 7;
        let live = |row: Row| is_old(row) || (first_new..next).contains(&row);
        let (output, placed) = place(&points, &mut pieces, live, &mut random);
        let inputs: Vec<JoinInput<'_>> = pieces.iter().map(Piece::input).collect();
        let graph = joined(PARAMS, &output, &inputs, &Inline);
        assert_sound(&graph, &placed, output.len());
        if round == 19 {
            let (anew, _) = inserted(&output, PARAMS, &placed);
            let (ours, theirs) = (
                recall_of(&graph, &output, &placed, 32),
                recall_of(&anew, &output, &placed, 32),
            );
            println!("{ours}, anew {theirs}");
            assert!(ours > theirs - 0.01, "{ours} against {theirs}");
        }
        // Holes have no point; the next round leaves them out.
        let mut rows = vec![Row::MAX; output.len() as usize];
        for piece in &pieces {
            for (&row, &place) in piece.rows.iter().zip(&piece.places) {
                if place != NO_PLACE {
                    rows[place as usize] = row;
                }
            }
        }
        piece = Piece {
            parts: graph.freeze(),
            places: vec![NO_PLACE; rows.len()],
            rows,
        };
    }
}

#[test]
fn growing_and_frozen_inputs_join_to_the_same_graph() {
    let points = Points::clustered(900, 6, 8, 0.4, 33);
    let (first, second) = (
        points.only(&(0..500).collect::<Vec<_>>()),
        points.only(&(500..900).collect::<Vec<_>>()),
    );
    let graphs = [
        built(&first, PARAMS),
        built(&second, Params { seed: 2, ..PARAMS }),
    ];
    let places: [Vec<Row>; 2] = [(0..500).collect(), (500..900).collect()];
    let growing: Vec<JoinInput<'_>> = (graphs.iter().zip(&places))
        .map(|(graph, places)| JoinInput {
            source: Source::Growing(graph),
            places,
        })
        .collect();
    let pieces: Vec<Piece> = (graphs.iter().zip(&places))
        .map(|(graph, places)| Piece {
            parts: graph.freeze(),
            rows: places.clone(),
            places: places.clone(),
        })
        .collect();
    let frozen: Vec<JoinInput<'_>> = pieces.iter().map(Piece::input).collect();
    let prints = [(&growing, 1), (&frozen, 1), (&frozen, 3)].map(|(inputs, threads)| {
        fingerprint(&joined(PARAMS, &points, inputs, &Threads(threads)), 900)
    });
    assert_eq!(prints, [prints[0]; 3]);
}

#[test]
fn places_past_the_end_or_taken_are_refused() {
    let points = Points::clustered(20, 3, 2, 0.3, 34);
    let graph = built(&points, PARAMS);
    let refuse = |places: &[Row]| {
        let source = Source::Growing(&graph);
        Join::new(PARAMS, 20, &[JoinInput { source, places }]).map(drop)
    };
    assert_eq!(refuse(&[0, 1, NO_PLACE, 2]), Ok(()));
    let range = BadPlaces::Range {
        input: 0,
        row: 1,
        place: 20,
        rows: 20,
    };
    assert_eq!(refuse(&[0, 20]), Err(range));
    let taken = BadPlaces::Taken {
        input: 0,
        row: 2,
        place: 7,
    };
    assert_eq!(refuse(&[7, 0, 7]), Err(taken));
}
