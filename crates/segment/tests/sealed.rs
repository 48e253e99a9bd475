//! A sealed segment answers as the growing one that it was made from, keeps what happens to it later,
//! and notices every damaged byte.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::sync::Arc;

use flatwater_index::hnsw::{Inline, Params};
use flatwater_index::{Metric, Row};
use flatwater_segment::dir::{Directory, FsDirectory};
use flatwater_segment::durable;
use flatwater_segment::field::FieldType;
use flatwater_segment::growing::write::{NewRow, NewVector, SegmentWriter};
use flatwater_segment::parts::spec::{SegmentSpec, VectorSpec};
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::path::JsonPath;
use flatwater_segment::sealed::{open, seal};
use flatwater_segment::search::{Hit, SegmentSearch, search_segment};
use flatwater_segment::view::SegmentView;
use flatwater_segment::{PointId, SeqNo};
use serde_json::json;
use uuid::Uuid;

const ROWS: u64 = 1500;
const DIMS: [usize; 2] = [72, 8];

fn spec() -> Arc<SegmentSpec> {
    let params = Some(Params {
        m: 8,
        ef_construct: 40,
        seed: 3,
    });
    Arc::new(SegmentSpec {
        vectors: vec![
            VectorSpec::new("a", DIMS[0], Metric::Euclid, params, 1),
            VectorSpec::new("b", DIMS[1], Metric::Manhattan, params, 1),
        ],
        rows_max: ROWS as Row,
    })
}

/// A vector that follows from two numbers.
fn vector(dim: usize, point: u64, salt: u64) -> Vec<f32> {
    let mut state =
        point.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
    (0..dim)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            (state >> 40) as f32 / (1 << 24) as f32 - 0.5
        })
        .collect()
}

fn id(point: u64) -> PointId {
    if point.is_multiple_of(5) {
        PointId::Uuid(u128::from(point) << 70 | 9)
    } else {
        PointId::Num(point)
    }
}

fn new_row(point: u64, salt: u64) -> NewRow {
    let of = |dim| NewVector {
        original: vector(dim, point, salt),
        rotated: None,
    };
    let payload = json!({ "n": point, "kind": format!("k{}", point % 7) });
    NewRow {
        id: id(point),
        // Every third point lacks the second vector.
        vectors: vec![
            Some(of(DIMS[0])),
            (!point.is_multiple_of(3)).then(|| of(DIMS[1])),
        ],
        payload_json: (!point.is_multiple_of(4)).then(|| payload.to_string().into_bytes()),
    }
}

struct Fixture {
    _temp: tempfile::TempDir,
    root: Arc<dyn Directory>,
    writer: SegmentWriter,
    seq: SeqNo,
}

impl Fixture {
    /// A full segment with overwritten and deleted points, changed payloads, a field index, and complete
    /// graphs.
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root: Arc<dyn Directory> = Arc::new(FsDirectory::open(temp.path()).unwrap());
        let dir = root.subdir("growing").unwrap();
        let mut writer = SegmentWriter::create(dir, Uuid::from_u128(1), spec()).unwrap();
        let mut seq = 0;
        let points = ROWS - 100;
        for batch in (0..points).collect::<Vec<_>>().chunks(100) {
            seq += 1;
            push(
                &mut writer,
                seq,
                batch.iter().map(|&p| new_row(p, 0)).collect(),
            );
        }
        seq += 1;
        push(
            &mut writer,
            seq,
            (0..100).map(|p| new_row(p * 3, 1)).collect(),
        );
        seq += 1;
        for point in (0..points).filter(|p| p % 11 == 2) {
            assert!(writer.delete(id(point), seq));
        }
        writer
            .add_field_index("kind", JsonPath::parse("kind").unwrap(), FieldType::Keyword)
            .unwrap();
        let mut fixture = Self {
            _temp: temp,
            root,
            writer,
            seq,
        };
        for point in 40..60 {
            fixture.set_payload(point, "before");
        }
        let segment = Arc::clone(fixture.writer.segment());
        for column in 0..DIMS.len() {
            while segment.index_step(column, &Inline, &|| false) {}
            assert_eq!(segment.columns()[column].indexed_len(), ROWS as Row);
        }
        fixture
    }

    fn set_payload(&mut self, point: u64, kind: &str) {
        self.seq += 1;
        set_payload(&mut self.writer, point, kind, self.seq);
    }

    fn view(&mut self) -> SegmentView {
        self.writer.view(self.seq)
    }

    /// The sealed form of the segment as it is now.
    fn seal(&mut self, name: &str) -> (SegmentView, SegmentWriter) {
        let view = self.view();
        let dir = self.root.subdir(name).unwrap();
        seal::seal(&view, &dir, &|| false).unwrap();
        let sealed = open::open(dir, Uuid::from_u128(2), spec()).unwrap();
        (view, sealed)
    }
}

fn push(writer: &mut SegmentWriter, seq: SeqNo, rows: Vec<NewRow>) {
    let sizes: Vec<usize> = (rows.iter().flat_map(|r| &r.payload_json))
        .map(Vec::len)
        .collect();
    writer.reserve(rows.len(), &sizes).unwrap();
    writer.push_rows(seq, &rows).unwrap();
}

fn set_payload(writer: &mut SegmentWriter, point: u64, kind: &str, seq: SeqNo) {
    let (row, _) = writer.segment().newest(id(point)).unwrap();
    let text = json!({ "kind": kind, "changed": seq }).to_string();
    writer.reserve(0, &[text.len()]).unwrap();
    writer.set_payload(row, seq, text.as_bytes());
}

fn hits(view: &SegmentView, column: usize, query: &[f32], exact: bool) -> Vec<Hit> {
    let search = SegmentSearch {
        column,
        vector: query,
        k: 10,
        ef: 60,
        exact,
        mask: None,
    };
    search_segment(view, &search).unwrap()
}

type Seen = (PointId, Row, SeqNo, Payload, Vec<(String, Vec<f32>)>);

/// Everything that a read can find out about the points.
fn points(view: &SegmentView) -> Vec<Seen> {
    let mut seen = Vec::new();
    view.walk_points(None, |id, row| {
        let vectors = view.vectors_of(row);
        let vectors = vectors
            .map(|(name, v)| (name.to_owned(), v.to_vec()))
            .collect();
        let payload = view.payload_of(row).unwrap();
        seen.push((id, row, view.version_of(row), payload, vectors));
        true
    });
    seen
}

fn assert_same(a: &SegmentView, b: &SegmentView) {
    assert_eq!(points(a), points(b));
    assert_eq!(
        (a.live_count(), a.rows_len(), a.indexed_vectors()),
        (b.live_count(), b.rows_len(), b.indexed_vectors())
    );
    for (column, dim) in DIMS.into_iter().enumerate() {
        for q in 0..30 {
            let query = vector(dim, q * 31, 7);
            assert_eq!(hits(a, column, &query, true), hits(b, column, &query, true));
            assert_eq!(
                hits(a, column, &query, false),
                hits(b, column, &query, false)
            );
        }
    }
    for point in 0..ROWS + 5 {
        assert_eq!(a.row_of_point(id(point)), b.row_of_point(id(point)));
    }
}

#[test]
fn a_sealed_segment_answers_as_the_one_it_was_made_from() {
    let mut fixture = Fixture::new();
    let (view, mut sealed) = fixture.seal("sealed");
    assert!(sealed.segment().is_sealed() && sealed.is_full());
    let kind = JsonPath::parse("kind").unwrap();
    sealed
        .add_field_index("kind", kind, FieldType::Keyword)
        .unwrap();
    assert_same(&view, &sealed.view(view.watermark()));
    let with_field = |view: &SegmentView| view.points_with_field("kind");
    assert_eq!(
        with_field(&view),
        with_field(&sealed.view(view.watermark()))
    );
    assert!(matches!(
        sealed.reserve(1, &[]),
        Err(flatwater_segment::error::SegmentError::Full { .. })
    ));
}

#[test]
fn what_happens_while_it_is_sealed_is_taken_over() {
    let mut fixture = Fixture::new();
    let (view, mut sealed) = fixture.seal("sealed");
    fixture.seq += 1;
    let seq = fixture.seq;
    for point in [1, 4, 7, 700] {
        assert!(fixture.writer.delete(id(point), seq));
    }
    for point in [41, 203, 204] {
        fixture.set_payload(point, "meanwhile");
    }
    fixture.set_payload(203, "again");
    sealed.catch_up(&view, &Some).unwrap();
    let now = fixture.view();
    assert_same(&now, &sealed.view(now.watermark()));
    // The view that was sealed is as it was.
    assert!(view.row_of_point(id(4)).is_some() && now.row_of_point(id(4)).is_none());
}

#[test]
fn what_happens_to_a_sealed_segment_survives_reopening_and_verifies() {
    let mut fixture = Fixture::new();
    let (_, mut sealed) = fixture.seal("sealed");
    let mut seq = fixture.seq;
    for round in 0..3 {
        seq += 1;
        for point in [8 + round, 300 + round] {
            assert!(sealed.delete(id(point), seq));
        }
        seq += 1;
        set_payload(&mut sealed, 500, &format!("round {round}"), seq);
        let view = sealed.view(seq);
        durable::record(&view).unwrap();
        // Not recorded: the log has it.
        sealed.delete(id(900 + round), seq + 1);
        drop(sealed);
        let dir = fixture.root.subdir("sealed").unwrap();
        sealed = durable::recover(dir, Uuid::from_u128(2), spec()).unwrap();
        assert_eq!(sealed.segment().recorded_seq(), seq);
        // The view of before knows nothing of the delete after it.
        assert_same(&view, &sealed.view(seq));
    }
    let dir = fixture.root.subdir("sealed").unwrap();
    durable::verify(&dir, Uuid::from_u128(2), &spec(), &mut |damage| {
        panic!("{damage}")
    });
}

#[test]
fn a_cancelled_seal_stops() {
    let mut fixture = Fixture::new();
    let view = fixture.view();
    let dir = fixture.root.subdir("cancelled").unwrap();
    let looks = std::cell::Cell::new(0);
    let cancel = || {
        looks.set(looks.get() + 1);
        looks.get() > 5
    };
    assert!(matches!(
        seal::seal(&view, &dir, &cancel),
        Err(seal::SealError::Cancelled)
    ));
    // What is there is no segment.
    assert!(!dir.exists("segment").unwrap());
}

#[test]
fn any_damaged_file_is_named() {
    let mut fixture = Fixture::new();
    let (_, sealed) = fixture.seal("sealed");
    drop(sealed);
    let dir = fixture.root.subdir("sealed").unwrap();
    let names = dir.list().unwrap();
    assert!(names.len() > 12, "{names:?}");
    for name in names {
        let path = dir.path().join(&name);
        let good = std::fs::read(&path).unwrap();
        for at in [13, good.len() / 2] {
            let mut bad = good.clone();
            bad[at] ^= 0x20;
            std::fs::write(&path, &bad).unwrap();
            let mut damages = Vec::new();
            durable::verify(&dir, Uuid::from_u128(2), &spec(), &mut |d| {
                damages.push(d.to_string());
            });
            assert!(
                damages.iter().any(|damage| damage.contains(&name)),
                "{name} byte {at}: {damages:?}"
            );
        }
        std::fs::write(&path, &good).unwrap();
    }
}

#[test]
fn saved_links_come_back_and_a_damaged_file_of_them_is_built_anew() {
    let mut fixture = Fixture::new();
    let segment = Arc::clone(fixture.writer.segment());
    let view = fixture.view();
    durable::record(&view).unwrap();
    segment.save_links(0).unwrap();
    segment.save_links(1).unwrap();
    let reopen = || {
        let dir = fixture.root.subdir("growing").unwrap();
        durable::recover(dir, Uuid::from_u128(1), spec()).unwrap()
    };
    let indexed = |writer: &SegmentWriter| {
        let columns = writer.segment().columns().iter();
        columns
            .map(|column| column.indexed_len())
            .collect::<Vec<_>>()
    };
    let mut back = reopen();
    assert_eq!(indexed(&back), [ROWS as Row, ROWS as Row]);
    assert_same(&view, &back.view(view.watermark()));
    drop(back);
    let path = fixture.root.path().join("growing").join("links0");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let back = reopen();
    assert_eq!(indexed(&back), [0, ROWS as Row]);
    assert!(!path.exists(), "the damaged file is removed");
}

#[test]
fn links_saved_past_the_recorded_rows_are_cut_to_them() {
    let temp = tempfile::tempdir().unwrap();
    let root: Arc<dyn Directory> = Arc::new(FsDirectory::open(temp.path()).unwrap());
    let dir = root.subdir("growing").unwrap();
    let mut writer = SegmentWriter::create(Arc::clone(&dir), Uuid::from_u128(1), spec()).unwrap();
    push(&mut writer, 1, (0..1100).map(|p| new_row(p, 0)).collect());
    durable::record(&writer.view(1)).unwrap();
    push(
        &mut writer,
        2,
        (1100..1400).map(|p| new_row(p, 0)).collect(),
    );
    let segment = Arc::clone(writer.segment());
    while segment.index_step(0, &Inline, &|| false) {}
    segment.save_links(0).unwrap();
    drop((writer, segment));
    for _ in 0..2 {
        let back = durable::recover(Arc::clone(&dir), Uuid::from_u128(1), spec()).unwrap();
        assert_eq!(back.segment().columns()[0].indexed_len(), 1100);
    }
    // Other rows take the numbers that the lost ones had; links to those are not believed.
    let mut back = durable::recover(dir, Uuid::from_u128(1), spec()).unwrap();
    push(&mut back, 2, (2000..2300).map(|p| new_row(p, 5)).collect());
    let segment = Arc::clone(back.segment());
    while segment.index_step(0, &Inline, &|| false) {}
    let view = back.view(2);
    let mut found = 0;
    for q in 0..40 {
        let query = vector(DIMS[0], 2000 + q, 5);
        found += usize::from(hits(&view, 0, &query, false)[0].id == id(2000 + q));
    }
    assert!(found >= 39, "{found} of 40 new rows are found");
}
