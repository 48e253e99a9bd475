//! The one writer of a segment.
//!
//! In a growing segment it appends rows; in either kind it stamps deletes and stores payload changes.
//! A row is pushed, published to the chunks, and only then entered in the id map; it is in no view
//! until the shard takes one ([`SegmentWriter::view`]). Stamps are one store each.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flatwater_index::Row;
use flatwater_index::hnsw::Hnsw;
use parking_lot::Mutex;
use uuid::Uuid;

use super::checkpoint::SegmentState;
use super::field_build::FieldBuild;
use crate::chunk::{ChunkWriter, StampPages};
use crate::dir::Directory;
use crate::error::SegmentError;
use crate::field::FieldType;
use crate::ids::{PointId, SeqNo};
use crate::parts::column::{ColumnWriter, VectorColumn};
use crate::parts::fields::FieldBuilders;
use crate::parts::payload_rows::PayloadRowsWriter;
use crate::parts::spec::SegmentSpec;
use crate::parts::{Recorded, Segment};
use crate::payload::path::JsonPath;
use crate::points::Points;
use crate::points::heads::{HEAD_WORDS, RowHead};
use crate::points::ids::IdMap;
use crate::view::SegmentView;

/// Rows beyond `rows_max` that one operation may still add: it is never split over two segments.
pub const ROWS_SLACK: Row = 1 << 20;

/// A point as the writer stores it. Vectors stand in the order of the segment's spec.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRow {
    /// Id.
    pub id: PointId,
    /// For each vector of the spec: the original and, if it was made already, its rotated form.
    pub vectors: Vec<Option<NewVector>>,
    /// Payload as JSON text, `None` for an empty one.
    pub payload_json: Option<Vec<u8>>,
}

/// A vector on its way into a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct NewVector {
    /// As it is stored (normalised for `Cosine`).
    pub original: Vec<f32>,
    /// Rotated by the collection's rotation.
    pub rotated: Option<Vec<f32>>,
}

/// The writer of one segment.
#[derive(Debug)]
pub struct SegmentWriter {
    segment: Arc<Segment>,
    /// What takes rows; a sealed segment has none.
    growth: Option<Growth>,
    payload: PayloadRowsWriter,
    fields: FieldBuilders,
    live: u64,
}

/// The writers of a growing segment's rows.
#[derive(Debug)]
struct Growth {
    heads: ChunkWriter<u64>,
    columns: Vec<ColumnWriter>,
}

impl SegmentWriter {
    /// Creates an empty segment in `dir`, which is its own.
    ///
    /// # Errors
    /// [`SegmentError::Dir`] if files cannot be created.
    pub fn create(
        dir: Arc<dyn Directory>,
        id: Uuid,
        spec: Arc<SegmentSpec>,
    ) -> Result<Self, SegmentError> {
        let state = SegmentState::empty(spec.vectors.len());
        let graphs = spec.vectors.iter().map(|_| None).collect();
        let heads = ChunkWriter::create(Arc::clone(&dir), "heads", HEAD_WORDS);
        Self::open(dir, id, spec, &state, heads, graphs)
    }

    /// Opens a growing segment as `state` recorded it; rows behind it are written anew. `heads` are
    /// the recorded ones, `graphs` what was saved of each vector's graph.
    ///
    /// # Errors
    /// [`SegmentError::Dir`] for missing files, [`SegmentError::Corrupt`] if bytes do not check.
    pub(super) fn open(
        dir: Arc<dyn Directory>,
        id: Uuid,
        spec: Arc<SegmentSpec>,
        state: &SegmentState,
        heads: ChunkWriter<u64>,
        graphs: Vec<Option<Hnsw>>,
    ) -> Result<Self, SegmentError> {
        let rows_max = spec.rows_max.saturating_add(ROWS_SLACK);
        let columns = spec
            .vectors
            .iter()
            .zip(&state.columns)
            .zip(graphs)
            .enumerate()
            .map(|(i, ((vector, column), graph))| {
                ColumnWriter::open(&dir, i, vector.clone(), rows_max, column, graph)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let payload = PayloadRowsWriter::open(&dir, state.versions, state.blobs_end, None)?;
        let points = Points::Growing {
            heads: heads.array(),
            ids: IdMap::default(),
        };
        let shared = columns.iter().map(ColumnWriter::column).collect();
        let mut writer = Self::assemble(dir, id, spec, points, shared, payload, state.seq);
        writer.growth = Some(Growth { heads, columns });
        writer.restore(state)?;
        Ok(writer)
    }

    /// A writer without growth over the parts of a segment whose last recorded view is `seq`.
    pub(crate) fn assemble(
        dir: Arc<dyn Directory>,
        id: Uuid,
        spec: Arc<SegmentSpec>,
        points: Points,
        columns: Vec<Arc<VectorColumn>>,
        payload: PayloadRowsWriter,
        seq: SeqNo,
    ) -> Self {
        let live = points.rows_len().into();
        let segment = Arc::new(Segment {
            id,
            spec,
            points,
            deleted: StampPages::new(),
            columns,
            payload: payload.rows(),
            // No reader will ever hold a view from before the recorded one.
            dead_before: seq,
            dir,
            closed: AtomicBool::new(false),
            recorded: Mutex::new(Recorded::default()),
        });
        Self {
            segment,
            growth: None,
            payload,
            fields: FieldBuilders::default(),
            live,
        }
    }

    /// Rebuilds what is kept in memory only: the id map, the stamps and the live count.
    fn restore(&mut self, state: &SegmentState) -> Result<(), SegmentError> {
        let Points::Growing { heads, ids } = &self.segment.points else {
            return Ok(());
        };
        for row in 0..state.rows {
            let head = RowHead::decode(heads.row(row)).ok_or_else(|| SegmentError::Corrupt {
                file: "heads".to_owned(),
                offset: u64::from(row) * HEAD_WORDS as u64 * 8,
                detail: "not the head of a row".to_owned(),
            })?;
            ids.set(head.id, row);
        }
        self.restore_deleted(&state.deleted);
        Ok(())
    }

    /// Sets the stamps of deleted rows; nothing else has been stamped before.
    pub(crate) fn restore_deleted(&mut self, deleted: &[(Row, SeqNo)]) {
        for &(row, stamp) in deleted {
            self.segment.deleted.set(row, stamp);
        }
        self.live = u64::from(self.segment.rows_len()).saturating_sub(deleted.len() as u64);
    }

    /// The shared segment.
    #[must_use]
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Whether it takes no more rows.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.segment.is_full()
    }

    /// Makes room for rows and payload versions before their operation is logged.
    ///
    /// # Errors
    /// [`SegmentError::Dir`], a full disk among them; nothing changed then.
    /// [`SegmentError::Full`] past the slack that one operation has.
    pub fn reserve(&mut self, rows: usize, payload_sizes: &[usize]) -> Result<(), SegmentError> {
        let len = self.segment.rows_len();
        let room = self.segment.spec.rows_max.saturating_add(ROWS_SLACK) - len;
        let rows = Row::try_from(rows).ok().filter(|&rows| rows <= room);
        let Some(rows) = rows else {
            return Err(SegmentError::Full { rows: len });
        };
        match &mut self.growth {
            Some(growth) => {
                growth.heads.reserve(rows)?;
                for column in &mut growth.columns {
                    column.reserve(rows)?;
                }
            }
            None if rows > 0 => return Err(SegmentError::Full { rows: len }),
            None => {}
        }
        let versions =
            Row::try_from(payload_sizes.len()).map_err(|_| SegmentError::Full { rows: len })?;
        self.payload.reserve(versions, payload_sizes)
    }

    /// Appends the rows of one operation; room was reserved before.
    ///
    /// The rows these replace in this segment are stamped; other segments are the caller's to stamp.
    ///
    /// # Errors
    /// [`SegmentError::Full`] in a sealed segment, others only if room had not been reserved.
    pub fn push_rows(&mut self, seq: SeqNo, rows: &[NewRow]) -> Result<(), SegmentError> {
        let first = self.segment.rows_len();
        let (Some(growth), Points::Growing { ids, .. }) = (&mut self.growth, &self.segment.points)
        else {
            return Err(SegmentError::Full { rows: first });
        };
        for (row, new) in (first..).zip(rows) {
            let previous = ids.newest(new.id);
            let head = RowHead {
                id: new.id,
                seq,
                previous,
            };
            growth.heads.push(&head.encode());
            for (column, vector) in growth.columns.iter_mut().zip(&new.vectors) {
                let original = vector.as_ref().map(|v| v.original.as_slice());
                let rotated = vector.as_ref().and_then(|v| v.rotated.as_deref());
                column.push(row, original, rotated);
            }
            if let Some(json) = &new.payload_json {
                self.payload.push(row, seq, json);
            }
        }
        for column in &mut growth.columns {
            column.publish();
        }
        growth.heads.publish();
        let segment = Arc::clone(&self.segment);
        for (row, new) in (first..).zip(rows) {
            if let Some(previous) = segment.head(row).previous {
                self.stamp(previous, seq);
            }
            if let Points::Growing { ids, .. } = &segment.points {
                ids.set(new.id, row);
            }
            self.live += 1;
            if !self.fields.is_empty() {
                self.fields
                    .push(row, &self.segment.payload.payload_at(row, seq)?);
            }
        }
        Ok(())
    }

    /// Deletes the point `id` if its row here is live and older than `seq`.
    pub fn delete(&mut self, id: PointId, seq: SeqNo) -> bool {
        match self.segment.newest(id) {
            Some((row, head)) if head.seq < seq => self.stamp(row, seq),
            _ => false,
        }
    }

    /// Stamps a live row; a stamp once set is not changed.
    fn stamp(&mut self, row: Row, seq: SeqNo) -> bool {
        let is_live = self.segment.deleted.get(row) == SeqNo::MAX;
        if is_live {
            self.segment.deleted.set(row, seq);
            self.live -= 1;
        }
        is_live
    }

    /// Takes the vector at place `column` away from a row that is older than `seq`.
    pub fn delete_vector(&mut self, row: Row, column: usize, seq: SeqNo) {
        if let Some(column) = self.segment.columns.get(column)
            && self.segment.head(row).seq < seq
        {
            column.stamp(row, seq);
        }
    }

    /// Gives a live row a new payload, unless it has one of the same or a later `seq`. Room was
    /// reserved before.
    pub fn set_payload(&mut self, row: Row, seq: SeqNo, json: &[u8]) {
        if self.segment.payload.newest_seq(row) >= seq {
            return;
        }
        self.fields.mark_changed(row);
        self.payload.push(row, seq, json);
    }

    /// Indexes a field for the rows stored so far and those to come.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] if a stored payload does not check; no index is made then.
    pub fn add_field_index(
        &mut self,
        field: &str,
        path: JsonPath,
        field_type: FieldType,
    ) -> Result<(), SegmentError> {
        let segment = Arc::clone(&self.segment);
        let mut failure = None;
        let rows = (0..segment.rows_len()).map_while(|row| {
            match segment.payload.payload_at(row, SeqNo::MAX) {
                Ok(payload) => Some(payload),
                Err(error) => {
                    failure = Some(error);
                    None
                }
            }
        });
        self.fields.add(field, path, field_type, rows);
        if let Some(error) = failure {
            self.fields.remove(field);
            return Err(error);
        }
        Ok(())
    }

    /// Takes over an index that was built beside this writer; the next view holds it.
    ///
    /// # Errors
    /// [`SegmentError::Corrupt`] if a stored payload does not check; there is no new index then.
    ///
    /// Cost: the rows and payload changes that it has not followed yet.
    pub fn adopt(&mut self, build: FieldBuild) -> Result<(), SegmentError> {
        let field = build.field().to_owned();
        let builder = build.complete(&self.segment)?;
        self.fields.insert(&field, builder);
        Ok(())
    }

    /// Takes over what happened to the segment `since` is a view of, after that view: this one was
    /// made of it. `place` tells where a row of that segment went, if it was taken.
    ///
    /// # Errors
    /// [`SegmentError`] where payloads do not fit on the disk or do not check; the segment is not to be
    /// used then.
    ///
    /// Cost: the stamps of the old segment and the payloads changed since.
    pub fn catch_up(
        &mut self,
        since: &SegmentView,
        place: &dyn Fn(Row) -> Option<Row>,
    ) -> Result<(), SegmentError> {
        let from = Arc::clone(since.segment());
        let is_news = |stamp: SeqNo| stamp > since.watermark();
        for (row, stamp) in from.deleted.iter() {
            if let Some(row) = place(row).filter(|_| is_news(stamp)) {
                self.stamp(row, stamp);
            }
        }
        for (column, old) in self.segment.columns.iter().zip(&from.columns) {
            for (row, stamp) in old.stamped_rows() {
                if let Some(row) = place(row).filter(|_| is_news(stamp)) {
                    column.stamp(row, stamp);
                }
            }
        }
        for index in since.versions_len()..from.payload.versions_len() {
            let (row, seq, json) = from.payload.version(index)?;
            if let Some(row) = place(row) {
                self.reserve(0, &[json.len()])?;
                self.set_payload(row, seq, json);
            }
        }
        Ok(())
    }

    /// Drops a field's index.
    pub fn remove_field_index(&mut self, field: &str) {
        self.fields.remove(field);
    }

    /// Fields that are indexed, with their kinds.
    pub fn indexed_fields(&self) -> impl Iterator<Item = (&str, FieldType)> {
        self.fields.kinds()
    }

    /// The view of everything applied so far, `watermark` being the last applied `seq`.
    #[must_use]
    pub fn view(&mut self, watermark: SeqNo) -> SegmentView {
        self.fields.refresh();
        SegmentView {
            len: self.segment.rows_len(),
            live: self.live,
            watermark,
            versions_len: self.segment.payload.versions_len(),
            blobs_end: self.segment.payload.blobs_end(),
            fields: self.fields.snapshot(),
            segment: Arc::clone(&self.segment),
        }
    }
}
