//! Field indexes on the cases that users reported, and over merges, marks and rebuilds.

use serde_json::{Value, json};

use super::builder::{BLOCK_ROWS_MAX, BLOCK_ROWS_MIN, FieldIndexBuilder};
use super::order::{Direction, OrderValue};
use super::*;
use crate::payload::filter::{MatchValue, Range};

fn payload(value: &Value) -> Payload {
    value.as_object().unwrap().clone()
}

fn indexed(field_type: FieldType, payloads: &[Value]) -> Arc<FieldIndex> {
    let mut builder = FieldIndexBuilder::new(JsonPath::parse("f").unwrap(), field_type);
    for (row, value) in (0..).zip(payloads) {
        builder.push(row, &payload(value));
    }
    builder.finish()
}

fn rows(index: &FieldIndex, test: &FieldTest) -> Option<Vec<Row>> {
    let mut out = RowBits::new(index.covered());
    index.rows_matching(test, &mut out)?;
    Some(out.iter().collect())
}

fn is(keyword: &str) -> FieldTest {
    FieldTest::Value(MatchValue::Keyword(keyword.to_owned()))
}

fn integers(values: &[i64]) -> Vec<MatchValue> {
    values.iter().copied().map(MatchValue::Integer).collect()
}

#[test]
fn an_integer_index_splits_at_a_fractional_bound_exactly() {
    let index = indexed(FieldType::Integer, &[json!({"f": 1}), json!({"f": 2})]);
    let range = |range| rows(&index, &FieldTest::Range(range)).unwrap();
    assert_eq!(
        range(Range {
            gte: Some(1.5),
            ..Range::default()
        }),
        [1]
    );
    assert_eq!(
        range(Range {
            gt: Some(1.5),
            ..Range::default()
        }),
        [1]
    );
    assert_eq!(
        range(Range {
            lt: Some(1.5),
            ..Range::default()
        }),
        [0]
    );
    assert_eq!(
        range(Range {
            lte: Some(1.5),
            ..Range::default()
        }),
        [0]
    );
    assert_eq!(
        range(Range {
            gt: Some(-1e300),
            lt: Some(1e300),
            ..Range::default()
        }),
        [0, 1]
    );
    assert_eq!(
        range(Range {
            gt: Some(2.0),
            lt: Some(1.0),
            ..Range::default()
        }),
        [0; 0]
    );
    assert_eq!(
        range(Range {
            gt: Some(f64::NAN),
            ..Range::default()
        }),
        [0; 0]
    );
}

#[test]
fn an_integer_index_ranges_over_floats_and_larger_integers_too() {
    let low = -3.402_823_466_385_288_6e38;
    let index = indexed(
        FieldType::Integer,
        &[
            json!({"f": low}),
            json!({"f": u64::MAX}),
            json!({"f": [1.0, "1", 7]}),
            json!({"f": -0.0}),
        ],
    );
    let range = |range| rows(&index, &FieldTest::Range(range)).unwrap();
    assert_eq!(
        range(Range {
            gt: Some(low),
            ..Range::default()
        }),
        [1, 2, 3]
    );
    assert_eq!(
        range(Range {
            gte: Some(low),
            lt: Some(0.0),
            ..Range::default()
        }),
        [0]
    );
    assert_eq!(
        range(Range {
            gte: Some(0.0),
            lt: Some(1e300),
            ..Range::default()
        }),
        [1, 2, 3]
    );
    assert_eq!(
        rows(&index, &FieldTest::Any(integers(&[1]))).unwrap(),
        [0; 0]
    );
    assert_eq!(
        index.points_with_field(),
        1,
        "only row 2 holds an integer of 64 bits"
    );
}

#[test]
fn except_nothing_gives_every_row_with_a_value_from_either_index() {
    let payloads = [
        json!({"f": "a"}),
        json!({"f": 5}),
        json!({"f": [null, true]}),
        json!({"f": null}),
        json!({"f": []}),
        json!({"f": [null]}),
        json!({}),
    ];
    for field_type in [FieldType::Keyword, FieldType::Integer] {
        let index = indexed(field_type, &payloads);
        assert_eq!(rows(&index, &FieldTest::Except(vec![])).unwrap(), [0, 1, 2]);
        assert_eq!(rows(&index, &FieldTest::Any(vec![])).unwrap(), [0; 0]);
    }
}

#[test]
fn except_gives_rows_whose_values_are_not_all_listed() {
    let payloads = [
        json!({"f": 1}),
        json!({"f": [1, 2, 1]}),
        json!({"f": [1, 2, 3]}),
        json!({"f": [1, "x"]}),
        json!({"f": 3}),
    ];
    let index = indexed(FieldType::Integer, &payloads);
    let except = |listed: &[i64]| rows(&index, &FieldTest::Except(integers(listed))).unwrap();
    assert_eq!(except(&[1]), [1, 2, 3, 4]);
    assert_eq!(except(&[1, 2, 2, 1, 9]), [2, 3, 4]);
    assert_eq!(except(&[1, 2, 3]), [3]);
}

#[test]
fn the_index_tells_null_from_empty_from_missing() {
    let payloads = [
        json!({"f": null}),
        json!({"f": [null, "a"]}),
        json!({"f": []}),
        json!({}),
        json!({"f": "a"}),
        json!({"f": [null]}),
    ];
    for field_type in [FieldType::Keyword, FieldType::Integer] {
        let index = indexed(field_type, &payloads);
        assert_eq!(rows(&index, &FieldTest::IsNull(true)).unwrap(), [0, 1, 5]);
        assert_eq!(rows(&index, &FieldTest::IsNull(false)).unwrap(), [2, 3, 4]);
        assert_eq!(rows(&index, &FieldTest::IsEmpty(true)).unwrap(), [0, 2, 3]);
        assert_eq!(rows(&index, &FieldTest::IsEmpty(false)).unwrap(), [1, 4, 5]);
    }
}

#[test]
fn an_index_says_none_to_tests_on_values_that_it_does_not_hold() {
    let keyword = indexed(FieldType::Keyword, &[json!({"f": "a"})]);
    let integer = indexed(FieldType::Integer, &[json!({"f": 1})]);
    let mixed = vec![MatchValue::Integer(1), MatchValue::Keyword("a".into())];
    for index in [&keyword, &integer] {
        for test in [
            FieldTest::Any(mixed.clone()),
            FieldTest::Except(mixed.clone()),
            FieldTest::Value(MatchValue::Bool(true)),
        ] {
            assert_eq!(rows(index, &test), None);
            assert_eq!(index.estimate(&test), None);
        }
    }
    assert_eq!(rows(&keyword, &FieldTest::Range(Range::default())), None);
    assert_eq!(rows(&keyword, &FieldTest::Any(integers(&[1]))), None);
    assert_eq!(rows(&integer, &is("a")), None);
}

#[test]
fn estimates_of_disjoint_values_add_up_exactly() {
    let payloads: Vec<_> = (0..1000)
        .map(|n| json!({"f": format!("k{}", n % 5)}))
        .collect();
    let index = indexed(FieldType::Keyword, &payloads);
    let any: Vec<_> = ["k1", "k2", "k4"]
        .map(|k| MatchValue::Keyword(k.into()))
        .into();
    assert_eq!(index.estimate(&is("k0")), Some(200));
    assert_eq!(index.estimate(&FieldTest::Any(any.clone())), Some(600));
    assert_eq!(rows(&index, &FieldTest::Any(any)).unwrap().len(), 600);
    assert_eq!(index.estimate(&FieldTest::IsEmpty(true)), Some(0));
}

#[test]
fn every_pushed_row_with_the_field_is_counted() {
    let payloads: Vec<_> = (0..1300)
        .map(|n| {
            if n % 3 == 0 {
                json!({"g": "x"})
            } else {
                json!({"f": ["x", "y", n.to_string()]})
            }
        })
        .collect();
    let index = indexed(FieldType::Keyword, &payloads);
    assert_eq!(index.covered(), 1300);
    assert_eq!(index.points_with_field(), 866);
    assert_eq!(rows(&index, &is("y")).unwrap().len(), 866);
}

#[test]
fn blocks_are_merged_upwards_and_answer_the_same() {
    let mut builder = FieldIndexBuilder::new(JsonPath::parse("f").unwrap(), FieldType::Integer);
    let total = BLOCK_ROWS_MAX + 4096 + 3 * BLOCK_ROWS_MIN + 5;
    for row in 0..total as Row {
        builder.push(row, &payload(&json!({"f": row % 1000})));
    }
    let index = builder.snapshot();
    let sizes: Vec<_> = index
        .blocks()
        .iter()
        .map(|block| block.rows().len())
        .collect();
    assert_eq!(sizes, [BLOCK_ROWS_MAX, 4096, 256, 256, 256]);
    assert_eq!(index.covered() as usize, total - 5);
    let found = rows(&index, &FieldTest::Any(integers(&[7]))).unwrap();
    let expected: Vec<_> = (0..index.covered()).filter(|row| row % 1000 == 7).collect();
    assert_eq!(found, expected);
    let range = Range {
        gte: Some(3.0),
        lt: Some(900.0),
        ..Range::default()
    };
    let found = rows(&index, &FieldTest::Range(range)).unwrap();
    let expected = (0..index.covered())
        .filter(|row| (3..900).contains(&(row % 1000)))
        .count();
    assert_eq!(found.len(), expected);
}

#[test]
fn a_row_that_changes_before_its_block_is_frozen_is_marked_there() {
    let mut builder = FieldIndexBuilder::new(JsonPath::parse("f").unwrap(), FieldType::Keyword);
    builder.push(0, &payload(&json!({"f": "old"})));
    builder.mark_changed(0);
    builder.mark_changed(1); // not pushed yet: it will be pushed with its current payload
    for row in 1..BLOCK_ROWS_MIN as Row {
        builder.push(row, &payload(&json!({"f": "old"})));
    }
    let index = builder.snapshot();
    let mut changed = RowBits::new(index.covered());
    index.changed_rows(&mut changed);
    assert_eq!(changed.iter().collect::<Vec<_>>(), [0]);
    assert_eq!(rows(&index, &is("old")).unwrap().len(), BLOCK_ROWS_MIN - 1);
}

#[test]
fn a_rebuilt_block_answers_for_changed_rows_and_the_old_one_stays_as_it_was() {
    let payloads: Vec<_> = (0..300).map(|_| json!({"f": "old"})).collect();
    let old = indexed(FieldType::Keyword, &payloads);
    assert!(old.mark_changed(5) && old.mark_changed(299) && old.mark_changed(5));
    assert!(!old.mark_changed(300));
    assert_eq!(old.changed_count(), 2);
    let now = |row: Row, visit: &mut dyn FnMut(&Payload)| {
        visit(&payload(
            &json!({"f": if row == 5 { "new" } else { "old" }}),
        ));
    };
    let block = old.rebuild_block(0, now).unwrap();
    assert_eq!(block.changed_count(), 0);
    let new = old.with_block(block).unwrap();
    assert_eq!(rows(&new, &is("new")).unwrap(), [5]);
    assert_eq!(
        rows(&new, &is("old")).unwrap().len(),
        298,
        "row 299 is still marked in its block"
    );
    assert_eq!(rows(&old, &is("new")).unwrap(), [0; 0]);
    assert_eq!(rows(&old, &is("old")).unwrap().len(), 298);
    assert!(old.rebuild_block(2, now).is_none());
    let other = indexed(FieldType::Keyword, &payloads[..100]);
    assert!(
        other.with_block(Arc::clone(&new.blocks()[0])).is_none(),
        "no block over these rows"
    );
}

#[test]
fn an_integer_is_matched_by_an_index_of_floats_too() {
    let payloads = [
        json!({"f": 1}),
        json!({"f": 1.0}),
        json!({"f": [1, 2.5]}),
        json!({"f": u64::MAX}),
        json!({"f": "1"}),
    ];
    let index = indexed(FieldType::Float, &payloads);
    let one = || integers(&[1]);
    assert_eq!(rows(&index, &FieldTest::Any(one())).unwrap(), [0, 2]);
    assert_eq!(
        rows(&index, &FieldTest::Except(one())).unwrap(),
        [1, 2, 3, 4]
    );
    let range = Range {
        gt: Some(1.0),
        ..Range::default()
    };
    assert_eq!(rows(&index, &FieldTest::Range(range)).unwrap(), [2, 3]);
    assert_eq!(index.points_with_field(), 4);
}

/// Rows with integers, floats, moments, several values and none; over several blocks.
fn ordered_payloads() -> Vec<Value> {
    (0..1100_i64)
        .map(|n| match n % 7 {
            0 => json!({"f": n * 37 % 101 - 50}),
            1 => json!({"f": [n % 13, (n % 13) as f64, "x"]}),
            2 => json!({"f": n as f64 / 8.0 - 40.0}),
            3 => json!({"f": [format!("2024-01-{:02}T00:00:00Z", n % 31 + 1), -0.0]}),
            4 => json!({"f": u64::MAX - n as u64}),
            5 => json!({"f": "2024-01-05"}),
            _ => json!({"g": n}),
        })
        .collect()
}

#[test]
fn an_index_visits_the_values_of_its_unchanged_rows_in_their_order() {
    let payloads = ordered_payloads();
    let path = JsonPath::parse("f").unwrap();
    let starts = [
        None,
        Some(OrderValue::Integer(3)),
        Some(OrderValue::Float(-0.5)),
        Some(OrderValue::Integer(1_704_412_800_000_000)),
    ];
    for field_type in [FieldType::Integer, FieldType::Float, FieldType::Datetime] {
        let index = indexed(field_type, &payloads);
        index.mark_changed(0);
        index.mark_changed(703);
        for (direction, start_from) in [Direction::Ascending, Direction::Descending]
            .into_iter()
            .flat_map(|direction| starts.map(|start| (direction, start)))
        {
            let order = Order {
                direction,
                start_from,
            };
            let mut expected = Vec::new();
            for (row, value) in (0..).zip(&payloads) {
                let visit = |value| expected.push((value, row));
                if ![0, 703].contains(&row) {
                    order.values_in(field_type, &path, &payload(value), visit);
                }
            }
            expected.sort_unstable();
            expected.dedup();
            let mut visited = Vec::new();
            index.walk(&order, &mut |value, row| {
                visited.push((value, row));
                std::ops::ControlFlow::Continue(())
            });
            // Few lists: the order is turned back at most three times a block.
            let turned = visited.windows(2).filter(|pair| match direction {
                Direction::Ascending => pair[1].0 < pair[0].0,
                Direction::Descending => pair[1].0 > pair[0].0,
            });
            assert!(turned.count() < 3 * index.blocks().len());
            visited.sort_unstable();
            visited.dedup();
            assert_eq!(visited, expected, "{field_type:?} {order:?}");
        }
    }
}

#[test]
fn a_walk_that_breaks_ends_one_list_and_goes_on_with_the_next() {
    let index = indexed(FieldType::Float, &ordered_payloads());
    let mut visited = 0;
    index.walk(&Order::default(), &mut |_, _| {
        visited += 1;
        std::ops::ControlFlow::Break(())
    });
    assert!(visited > index.blocks().len() && visited <= 3 * index.blocks().len());
    for unordered in [FieldType::Keyword, FieldType::Bool, FieldType::Uuid] {
        let index = indexed(unordered, &ordered_payloads());
        index.walk(&Order::default(), &mut |value, _| panic!("{value:?}"));
    }
}
