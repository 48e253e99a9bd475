//! Masks against the plain evaluator: random payloads, filters, indexes and histories.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::field::FieldType;
use crate::field::builder::FieldIndexBuilder;
use crate::payload::datetime::Datetime;
use crate::payload::filter::{
    Bounds, Condition, FieldCondition, FieldTest, Filter, MatchValue, MinShould, NestedCondition,
    Range,
};
use crate::payload::path::JsonPath;

/// Row r holds point r.
#[derive(Clone, Debug, Default)]
struct Rows(Vec<Arc<Payload>>);

impl RowSource for Rows {
    fn len(&self) -> Row {
        self.0.len() as Row
    }

    fn id(&self, row: Row) -> PointId {
        PointId::Num(u64::from(row))
    }

    fn payload(&self, row: Row, visit: &mut dyn FnMut(&Payload)) {
        visit(&self.0[row as usize]);
    }

    fn row_of(&self, id: PointId) -> Option<Row> {
        match id {
            PointId::Num(n) => Row::try_from(n).ok().filter(|row| *row < self.len()),
            PointId::Uuid(_) => None,
        }
    }

    /// Every third row has the vector "third".
    fn has_vector(&self, row: Row, name: &str) -> bool {
        name == "third" && row.is_multiple_of(3)
    }

    fn rows_with_vector(&self, name: &str) -> RowBits {
        let mut rows = RowBits::new(self.len());
        (0..self.len())
            .filter(|row| self.has_vector(*row, name))
            .for_each(|row| rows.insert(row));
        rows
    }
}

type Indexes = BTreeMap<String, Arc<FieldIndex>>;

fn check(filter: &Filter, indexes: &Indexes, rows: &Rows) -> Result<(), TestCaseError> {
    let filter = CompiledFilter::new(filter).unwrap();
    let mask = Mask::build(&filter, indexes, rows);
    let expected: Vec<Row> = (0..rows.len())
        .filter(|row| {
            let has_vector = |name: &str| rows.has_vector(*row, name);
            filter.matches(rows.id(*row), &rows.0[*row as usize], &has_vector)
        })
        .collect();
    let accepted: Vec<Row> = (0..rows.len() + 3)
        .filter(|row| mask.accepts(*row))
        .collect();
    prop_assert_eq!(&accepted, &expected);
    prop_assert_eq!(mask.accepted().collect::<Vec<_>>(), &*expected);
    let count = expected.len() as u64;
    prop_assert_eq!(mask.count(), count);
    prop_assert_eq!(
        mask.count_live(|row| row % 2 == 0),
        expected.iter().filter(|r| **r % 2 == 0).count() as u64
    );
    prop_assert!(mask.upper_count() >= count);
    prop_assert_eq!(mask.upper_count(), mask.candidates().count() as u64);
    if mask.is_exact() {
        prop_assert_eq!(mask.upper_count(), count);
    }
    for sample in [0, 3, 50, usize::MAX] {
        let estimate = mask.estimate(sample);
        prop_assert!(
            estimate.min <= count && count <= estimate.max,
            "{:?} {}",
            estimate,
            count
        );
        prop_assert!(estimate.min <= estimate.expected && estimate.expected <= estimate.max);
        prop_assert!(sample < usize::MAX || estimate.expected == count);
    }
    Ok(())
}

const PATHS: [&str; 10] = [
    "a", "b", "c.x", "c[].x", "a[]", "b[0]", "\"q.k\"", "c", "\"a\"", "x",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        4 => (-2..3_i64).prop_map(Value::from),
        2 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just((1 << 53) + 1)].prop_map(Value::from),
        1 => Just(Value::from(u64::MAX)),
        2 => prop_oneof![
            Just(1.5), Just(-0.0), Just(1.0), Just(1e300), Just(5e-324), Just(9_007_199_254_740_992.0),
            Just(9_223_372_036_854_775_808.0), Just(-9_223_372_036_854_775_808.0),
        ].prop_map(Value::from),
        5 => prop_oneof![Just(""), Just("x"), Just("y"), Just("z")].prop_map(Value::from),
        2 => prop::sample::select(MOMENTS.to_vec()).prop_map(Value::from),
        2 => prop::sample::select(UUIDS.to_vec()).prop_map(Value::from),
    ]
}

/// Moments, some of them the same in another spelling, and what is none.
const MOMENTS: [&str; 6] = [
    "2024-02-29",
    "2024-02-29T00:00:00Z",
    "2024-02-29T02:00:00.000001+02:00",
    "1969-12-31 23:59:59.999999",
    "9999-12-31T23:59:59Z",
    "2023-02-29",
];

/// A UUID in two spellings that are kept apart, another one, and other spellings.
const UUIDS: [&str; 5] = [
    "550e8400-e29b-41d4-a716-446655440000",
    "550E8400-E29B-41D4-A716-446655440000",
    "00000000-0000-0000-0000-000000000001",
    "550E8400-e29b-41d4-a716-446655440000",
    "550e8400e29b41d4a716446655440000",
];

fn moment() -> impl Strategy<Value = Datetime> {
    (prop::sample::select(MOMENTS[..5].to_vec()), -1..2_i64).prop_map(|(text, off)| {
        Datetime::from_micros(Datetime::parse(text).unwrap().micros() + off)
    })
}

fn moments() -> impl Strategy<Value = Bounds<Datetime>> {
    let bound = || prop::option::weighted(0.4, moment());
    (bound(), bound(), bound(), bound()).prop_map(|(lt, lte, gt, gte)| Bounds { lt, lte, gt, gte })
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            1 => inner.prop_map(|x| json!({ "x": x })),
        ]
    })
}

fn payload() -> impl Strategy<Value = Arc<Payload>> {
    let part = || prop::option::weighted(0.7, value());
    (part(), part(), part(), part()).prop_map(|(a, b, c, quoted)| {
        let parts = [("a", a), ("b", b), ("c", c), ("q.k", quoted)];
        Arc::new(
            parts
                .into_iter()
                .filter_map(|(k, v)| Some((k.to_owned(), v?)))
                .collect(),
        )
    })
}

fn match_value() -> impl Strategy<Value = MatchValue> {
    prop_oneof![
        1 => any::<bool>().prop_map(MatchValue::Bool),
        3 => prop_oneof![-2..3_i64, Just(i64::MIN), Just(i64::MAX)].prop_map(MatchValue::Integer),
        3 => "[xyz]?".prop_map(MatchValue::Keyword),
        2 => uuid_value(),
    ]
}

fn uuid_value() -> impl Strategy<Value = MatchValue> {
    prop::sample::select(UUIDS.to_vec()).prop_map(|text| MatchValue::Keyword(text.to_owned()))
}

fn match_values() -> impl Strategy<Value = Vec<MatchValue>> {
    prop_oneof![
        prop::collection::vec(match_value(), 0..4),
        prop::collection::vec((-2..3_i64).prop_map(MatchValue::Integer), 0..4),
        prop::collection::vec("[xyz]?".prop_map(MatchValue::Keyword), 0..4),
        prop::collection::vec(any::<bool>().prop_map(MatchValue::Bool), 0..3),
        prop::collection::vec(uuid_value(), 0..4),
    ]
}

fn range() -> impl Strategy<Value = Range> {
    let bound = || {
        let number = prop_oneof![
            3 => (-6..7_i32).prop_map(|half| f64::from(half) / 2.0),
            1 => prop_oneof![Just(1e300), Just(-1e300), Just(9_007_199_254_740_992.0), Just(f64::NAN)],
            1 => prop_oneof![Just(9_223_372_036_854_775_808.0), Just(-9_223_372_036_854_775_808.0)],
        ];
        prop::option::weighted(0.4, number)
    };
    (bound(), bound(), bound(), bound()).prop_map(|(lt, lte, gt, gte)| Range { lt, lte, gt, gte })
}

fn counts() -> impl Strategy<Value = Bounds<usize>> {
    let bound = || prop::option::weighted(0.3, 0..4_usize);
    (bound(), bound(), bound(), bound()).prop_map(|(lt, lte, gt, gte)| Bounds { lt, lte, gt, gte })
}

fn test() -> impl Strategy<Value = FieldTest> {
    prop_oneof![
        match_value().prop_map(FieldTest::Value),
        match_values().prop_map(FieldTest::Any),
        match_values().prop_map(FieldTest::Except),
        range().prop_map(FieldTest::Range),
        moments().prop_map(FieldTest::DatetimeRange),
        counts().prop_map(FieldTest::ValuesCount),
        any::<bool>().prop_map(FieldTest::IsEmpty),
        any::<bool>().prop_map(FieldTest::IsNull),
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop::sample::select(PATHS.to_vec()).prop_map(str::to_owned)
}

fn condition() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        6 => (path(), test()).prop_map(|(key, test)| Condition::Field(FieldCondition { key, test })),
        1 => path().prop_map(Condition::IsEmpty),
        1 => path().prop_map(Condition::IsNull),
        1 => prop::collection::vec((0..1200_u64).prop_map(PointId::Num), 0..5).prop_map(Condition::HasId),
        1 => prop::sample::select(vec!["third", "fourth"])
            .prop_map(|name| Condition::HasVector(name.to_owned())),
    ];
    leaf.prop_recursive(2, 16, 3, |inner| {
        let key = prop::sample::select(vec!["a", "b", "c", "c[]"]);
        prop_oneof![
            filter_of(inner.clone()).prop_map(Condition::Filter),
            (key, filter_of(inner)).prop_map(|(key, filter)| {
                let key = key.to_owned();
                Condition::Nested(NestedCondition { key, filter })
            }),
        ]
    })
}

fn filter_of(condition: impl Strategy<Value = Condition> + Clone) -> impl Strategy<Value = Filter> {
    let some = move |most| prop::collection::vec(condition.clone(), 0..most);
    (
        some(3),
        some(3),
        some(3),
        prop::option::weighted(0.4, (some(4), 0..4_usize)),
    )
        .prop_map(|(must, should, must_not, min_should)| {
            let min_should = min_should.map(|(conditions, min_count)| MinShould {
                conditions,
                min_count,
            });
            Filter {
                must,
                should,
                must_not,
                min_should,
            }
        })
}

fn filter() -> impl Strategy<Value = Filter> {
    filter_of(condition().boxed())
}

fn field_type() -> impl Strategy<Value = FieldType> {
    prop_oneof![
        Just(FieldType::Keyword),
        Just(FieldType::Integer),
        Just(FieldType::Float),
        Just(FieldType::Bool),
        Just(FieldType::Datetime),
        Just(FieldType::Uuid),
    ]
}

/// What happens to a growing segment.
#[derive(Clone, Debug)]
enum Event {
    /// This many rows arrive; `pick` chooses their payloads.
    Push { rows: usize, pick: usize },
    /// The payload of a row is replaced.
    Change { row: usize, pick: usize },
    /// A view is published.
    Publish,
    /// A block of each index is rebuilt from the state of an earlier view and put in place.
    Rebuild { view: usize, block: usize },
}

fn event() -> impl Strategy<Value = Event> {
    let number = || any::<u16>().prop_map(usize::from);
    prop_oneof![
        2 => (prop_oneof![3 => 0..400_usize, 1 => 3900..4300_usize], number())
            .prop_map(|(rows, pick)| Event::Push { rows, pick }),
        5 => (number(), number()).prop_map(|(row, pick)| Event::Change { row, pick }),
        2 => Just(Event::Publish),
        1 => (number(), number()).prop_map(|(view, block)| Event::Rebuild { view, block }),
    ]
}

/// What a reader of one view holds.
struct View {
    rows: Rows,
    indexes: Indexes,
    /// How many changes it shows.
    changes: usize,
}

/// The writer's state.
struct Segment<'p> {
    pool: &'p [Arc<Payload>],
    rows: Rows,
    builders: BTreeMap<String, FieldIndexBuilder>,
    changes: Vec<Row>,
}

impl Segment<'_> {
    fn view(&self) -> View {
        let indexes = self
            .builders
            .iter()
            .map(|(name, builder)| (name.clone(), builder.snapshot()));
        View {
            rows: self.rows.clone(),
            indexes: indexes.collect(),
            changes: self.changes.len(),
        }
    }

    fn apply(&mut self, event: &Event, views: &mut Vec<View>) {
        match *event {
            Event::Push { rows, pick } => {
                for at in 0..rows {
                    // A pattern without a short period, so that blocks differ.
                    let payload = &self.pool[(pick + at * at + at / 7) % self.pool.len()];
                    let row = self.rows.len();
                    self.rows.0.push(Arc::clone(payload));
                    self.builders
                        .values_mut()
                        .for_each(|builder| builder.push(row, payload));
                }
            }
            Event::Change { row, pick } if !self.rows.is_empty() => {
                let row = row % self.rows.0.len();
                self.builders
                    .values_mut()
                    .for_each(|builder| builder.mark_changed(row as Row));
                self.rows.0[row] = Arc::clone(&self.pool[pick % self.pool.len()]);
                self.changes.push(row as Row);
            }
            Event::Change { .. } => {}
            Event::Publish => views.push(self.view()),
            Event::Rebuild { view, block } if !views.is_empty() => {
                let view = &views[view % views.len()];
                for (name, index) in &view.indexes {
                    let at = block % index.blocks().len().max(1);
                    let payload_of =
                        |row, visit: &mut dyn FnMut(&Payload)| view.rows.payload(row, visit);
                    let Some(block) = index.rebuild_block(at, payload_of) else {
                        continue;
                    };
                    self.changes[view.changes..].iter().for_each(|row| {
                        block.mark_changed(*row);
                    });
                    if let Some(builder) = self.builders.get_mut(name) {
                        builder.replace_block(block);
                    }
                }
            }
            Event::Rebuild { .. } => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_mask_equals_the_plain_evaluator_in_every_view_old_or_new(
        pool in prop::collection::vec(payload(), 1..24),
        indexed in prop::collection::vec((path(), field_type()), 0..5),
        filters in prop::collection::vec(filter(), 1..4),
        events in prop::collection::vec(event(), 1..30),
    ) {
        let builders = (0..).zip(indexed).map(|(at, (path, field_type))| {
            let builder = FieldIndexBuilder::new(JsonPath::parse(&path).unwrap(), field_type);
            (format!("{path}/{at}"), builder)
        });
        let mut segment = Segment {
            pool: &pool,
            rows: Rows::default(),
            builders: builders.collect(),
            changes: Vec::new(),
        };
        let mut views = Vec::new();
        for event in &events {
            segment.apply(event, &mut views);
        }
        views.push(segment.view());
        for view in &views {
            for filter in &filters {
                check(filter, &view.indexes, &view.rows)?;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_index_that_answers_a_test_decides_its_rows_alone(
        pool in prop::collection::vec(payload(), 1..24),
        field_type in field_type(),
        path in path(),
        test in test(),
    ) {
        let rows = Rows((0..600).map(|row: usize| Arc::clone(&pool[row * row % pool.len()])).collect());
        let mut builder = FieldIndexBuilder::new(JsonPath::parse(&path).unwrap(), field_type);
        (0..).zip(&rows.0).for_each(|(row, payload)| builder.push(row, payload));
        let index = builder.finish();
        let estimate = index.estimate(&test);
        let indexes = BTreeMap::from([(path.clone(), index)]);
        let condition = Condition::Field(FieldCondition { key: path, test });
        let filter = Filter { must: vec![condition], ..Filter::default() };
        check(&filter, &indexes, &rows)?;
        let filter = CompiledFilter::new(&filter).unwrap();
        let mask = Mask::build(&filter, &indexes, &rows);
        // Where nothing has a value an index decides a count of values too.
        if let Some(estimate) = estimate {
            prop_assert!(mask.is_exact());
            prop_assert!(estimate >= mask.count());
        }
    }
}

fn field(key: &str, test: FieldTest) -> Condition {
    Condition::Field(FieldCondition {
        key: key.to_owned(),
        test,
    })
}

fn is(key: &str, keyword: &str) -> Condition {
    field(
        key,
        FieldTest::Value(MatchValue::Keyword(keyword.to_owned())),
    )
}

fn thousand_rows() -> (Rows, Indexes) {
    let payload = |n: usize| json!({"k": format!("v{}", n % 5), "n": n, "odd": n % 2 == 1});
    let rows = Rows(
        (0..1000)
            .map(|n| Arc::new(payload(n).as_object().unwrap().clone()))
            .collect(),
    );
    let mut builder = FieldIndexBuilder::new(JsonPath::parse("k").unwrap(), FieldType::Keyword);
    (0..)
        .zip(&rows.0)
        .for_each(|(row, payload)| builder.push(row, payload));
    (rows, BTreeMap::from([("k".to_owned(), builder.finish())]))
}

#[test]
fn counts_of_indexed_conditions_are_exact_without_reading_a_payload() {
    let (rows, indexes) = thousand_rows();
    let any = ["v1", "v2", "v4"]
        .map(|k| MatchValue::Keyword(k.to_owned()))
        .to_vec();
    for (condition, expected) in [
        (field("k", FieldTest::Any(any)), 600),
        (field("\"k\"", FieldTest::IsEmpty(true)), 0),
        (
            Condition::Filter(Filter {
                must_not: vec![is("k", "v0")],
                ..Filter::default()
            }),
            800,
        ),
    ] {
        let filter = Filter {
            must: vec![condition],
            ..Filter::default()
        };
        let filter = CompiledFilter::new(&filter).unwrap();
        let mask = Mask::build(&filter, &indexes, &rows);
        assert!(mask.is_exact());
        let exact = CountEstimate {
            min: expected,
            expected,
            max: expected,
        };
        assert_eq!((mask.count(), mask.estimate(0)), (expected, exact));
    }
}

#[test]
fn an_unindexed_part_leaves_only_the_indexed_candidates_open() {
    let (rows, indexes) = thousand_rows();
    let odd = field("odd", FieldTest::Value(MatchValue::Bool(true)));
    let filter = Filter {
        must: vec![is("k", "v3"), odd.clone()],
        ..Filter::default()
    };
    let filter = CompiledFilter::new(&filter).unwrap();
    let mask = Mask::build(&filter, &indexes, &rows);
    assert_eq!(
        (mask.upper_count(), mask.undecided(), mask.count()),
        (200, 200, 100)
    );
    let sampled = mask.estimate(64);
    assert!(sampled.expected.abs_diff(100) < 40, "{sampled:?}");

    // "one of": the indexed half is certain, the rest stays open.
    let filter = Filter {
        should: vec![is("k", "v3"), odd.clone()],
        ..Filter::default()
    };
    let filter = CompiledFilter::new(&filter).unwrap();
    let mask = Mask::build(&filter, &indexes, &rows);
    assert_eq!(
        (mask.upper_count(), mask.undecided(), mask.count()),
        (1000, 800, 600)
    );

    // "none of": what is certain inside is certain outside.
    let filter = Filter {
        must_not: vec![is("k", "v3"), odd],
        ..Filter::default()
    };
    let filter = CompiledFilter::new(&filter).unwrap();
    let mask = Mask::build(&filter, &indexes, &rows);
    assert_eq!(
        (mask.upper_count(), mask.undecided(), mask.count()),
        (800, 800, 400)
    );
}

#[test]
fn an_index_on_a_field_of_elements_narrows_a_nested_filter() {
    let payload = |n: usize| {
        let other = if n.is_multiple_of(10) { "x" } else { "y" };
        json!({"a": [{"b": n % 50, "c": "x"}, {"b": 7, "c": other}]})
    };
    let rows = Rows(
        (0..600)
            .map(|n| Arc::new(payload(n).as_object().unwrap().clone()))
            .collect(),
    );
    let path = JsonPath::parse("a[].b").unwrap();
    let mut builder = FieldIndexBuilder::new(path, FieldType::Integer);
    (0..)
        .zip(&rows.0)
        .for_each(|(row, payload)| builder.push(row, payload));
    let indexes = BTreeMap::from([("a[].b".to_owned(), builder.finish())]);
    let b = |n| field("b", FieldTest::Value(MatchValue::Integer(n)));
    let found = |filter: Filter| {
        let nested = NestedCondition {
            key: "a".to_owned(),
            filter,
        };
        let filter = Filter {
            must: vec![Condition::Nested(nested)],
            ..Filter::default()
        };
        let filter = CompiledFilter::new(&filter).unwrap();
        let mask = Mask::build(&filter, &indexes, &rows);
        (mask.upper_count(), mask.count())
    };
    let must = |must| Filter {
        must,
        ..Filter::default()
    };
    assert_eq!(found(must(vec![b(3), is("c", "x")])), (12, 12));
    assert_eq!(found(must(vec![b(3), is("c", "y")])), (12, 0));
    assert_eq!(found(must(vec![b(7), is("c", "x")])), (600, 72));
    let must_not = Filter {
        must_not: vec![b(7)],
        ..Filter::default()
    };
    assert_eq!(found(must_not), (600, 588));
}

#[test]
fn an_any_list_finds_the_same_rows_as_the_range_over_its_values() {
    let rows = Rows(
        (0..700)
            .map(|n| Arc::new(json!({"n": n % 97}).as_object().unwrap().clone()))
            .collect(),
    );
    let mut builder = FieldIndexBuilder::new(JsonPath::parse("n").unwrap(), FieldType::Integer);
    (0..)
        .zip(&rows.0)
        .for_each(|(row, payload)| builder.push(row, payload));
    let indexes = BTreeMap::from([("n".to_owned(), builder.snapshot())]);
    for most in [1, 13, 96, 500] {
        let any = FieldTest::Any((1..=most).map(MatchValue::Integer).collect());
        let range = Range {
            gte: Some(1.0),
            lte: Some(most as f64),
            ..Range::default()
        };
        let found = |test| {
            let filter = Filter {
                must: vec![field("n", test)],
                ..Filter::default()
            };
            let filter = CompiledFilter::new(&filter).unwrap();
            Mask::build(&filter, &indexes, &rows)
                .accepted()
                .collect::<Vec<_>>()
        };
        assert_eq!(found(any), found(FieldTest::Range(range)));
    }
}

#[test]
fn a_mask_is_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Mask<'_>>();
}
