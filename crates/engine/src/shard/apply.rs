//! Applies resolved operations to the segments of a shard, live and in replay alike.
//!
//! Applying is deterministic and idempotent by `seq`: an upsert is passed over where any segment
//! holds a row of that id with the same or a later `seq`; deletes and payload changes touch only
//! rows and payloads with a smaller one.

use std::sync::Arc;

use flatwater_index::Row;
use flatwater_segment::dir::Directory;
use flatwater_segment::growing::write::{NewRow, NewVector, SegmentWriter};
use flatwater_segment::parts::spec::SegmentSpec;
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::eval::CompiledFilter;
use flatwater_segment::payload::filter::Filter;
use flatwater_segment::payload::path::JsonPath;
use flatwater_segment::{PointId, SeqNo};

use super::edit::CompiledEdit;
use super::index::build_missing;
use super::op::{FieldIndexRecord, LogOp, LoggedPoint};
use super::schema::{self, FieldSchemas};
use super::view::ShardView;
use crate::clock;
use crate::error::{EngineError, Result};

/// The segments of a shard, owned by its writer thread.
#[derive(Debug)]
pub(super) struct Segments {
    pub(super) dir: Arc<dyn Directory>,
    pub(super) spec: Arc<SegmentSpec>,
    pub(super) writers: Vec<SegmentWriter>,
    pub(super) schemas: Arc<FieldSchemas>,
    /// Last applied operation.
    pub(super) applied: SeqNo,
}

/// New payload of one row, made before its operation is logged.
#[derive(Debug)]
pub(super) struct PayloadChange {
    segment: usize,
    row: Row,
    json: Vec<u8>,
}

impl Segments {
    /// The view of everything applied.
    pub(super) fn view(&mut self) -> ShardView {
        let watermark = self.applied;
        ShardView {
            watermark,
            segments: self
                .writers
                .iter_mut()
                .map(|writer| writer.view(watermark))
                .collect(),
            schemas: Arc::clone(&self.schemas),
        }
    }

    /// Makes room for the rows of one operation, starting the next segment if the last is full.
    pub(super) fn reserve_rows(&mut self, rows: &[NewRow]) -> Result<()> {
        if self.writers.last().is_none_or(SegmentWriter::is_full) {
            self.start_segment()?;
        }
        let sizes: Vec<usize> = rows
            .iter()
            .filter_map(|row| row.payload_json.as_ref().map(Vec::len))
            .collect();
        match self.writers.last_mut() {
            Some(writer) => Ok(writer.reserve(rows.len(), &sizes)?),
            None => Err(EngineError::Bug("a segment was just started".to_owned())),
        }
    }

    fn start_segment(&mut self) -> Result<()> {
        let id = clock::dated_id();
        let dir = self.dir.subdir(&id.to_string())?;
        let mut writer = SegmentWriter::create(dir, id, Arc::clone(&self.spec))?;
        build_missing(&mut writer, &self.schemas)?;
        self.writers.push(writer);
        Ok(())
    }

    /// Stores rows; room was reserved.
    pub(super) fn apply_rows(&mut self, seq: SeqNo, rows: &[NewRow]) -> Result<()> {
        let Some((last, older)) = self.writers.split_last_mut() else {
            return Err(EngineError::Bug("rows without a segment".to_owned()));
        };
        for row in rows {
            for writer in older.iter_mut() {
                writer.delete(row.id, seq);
            }
        }
        last.push_rows(seq, rows)?;
        self.applied = seq;
        Ok(())
    }

    /// Deletes points.
    pub(super) fn apply_delete(&mut self, seq: SeqNo, ids: &[PointId]) {
        for id in ids {
            for writer in &mut self.writers {
                writer.delete(*id, seq);
            }
        }
        self.applied = seq;
    }

    /// The live row of a point, as the writer sees it.
    fn live_row(&self, id: PointId) -> Option<(usize, Row)> {
        self.writers
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, writer)| {
                let segment = writer.segment();
                let (row, _) = segment.newest(id)?;
                (segment.deleted_at(row) == SeqNo::MAX).then_some((index, row))
            })
    }

    /// Works out the new payloads of a payload change and makes room for them.
    pub(super) fn plan_payload(
        &mut self,
        seq: SeqNo,
        ids: &[PointId],
        edit: &CompiledEdit,
    ) -> Result<Vec<PayloadChange>> {
        let mut changes = Vec::new();
        for id in ids {
            let Some((index, row)) = self.live_row(*id) else {
                continue;
            };
            let segment = self.writers[index].segment();
            let is_older = segment.head(row).seq < seq && segment.payload().newest_seq(row) < seq;
            if !is_older {
                continue;
            }
            let old = if edit.needs_old() {
                segment.payload().payload_at(row, SeqNo::MAX)?
            } else {
                Payload::new()
            };
            let json = serde_json::to_vec(&edit.apply(old))
                .map_err(|error| EngineError::Bug(format!("payload to JSON: {error}")))?;
            changes.push(PayloadChange {
                segment: index,
                row,
                json,
            });
        }
        for (index, writer) in self.writers.iter_mut().enumerate() {
            let sizes: Vec<usize> = changes
                .iter()
                .filter(|c| c.segment == index)
                .map(|c| c.json.len())
                .collect();
            writer.reserve(0, &sizes)?;
        }
        Ok(changes)
    }

    /// Stores the payloads of [`Segments::plan_payload`].
    pub(super) fn apply_payload(&mut self, seq: SeqNo, changes: &[PayloadChange]) {
        for change in changes {
            self.writers[change.segment].set_payload(change.row, seq, &change.json);
        }
        self.applied = seq;
    }

    /// `rows` with what they leave out taken from the points as they are: other vectors, payload.
    ///
    /// # Errors
    /// `PointNotFound` for the first id that does not exist; `Corrupt`.
    pub(super) fn whole_rows(&self, rows: Vec<NewRow>) -> Result<Vec<NewRow>> {
        rows.into_iter()
            .map(|mut new| {
                let (index, row) = self
                    .live_row(new.id)
                    .ok_or_else(|| EngineError::PointNotFound(new.id.to_string()))?;
                let segment = self.writers[index].segment();
                for (vector, column) in new.vectors.iter_mut().zip(segment.columns()) {
                    if vector.is_none() && column.has(row, SeqNo::MAX - 1) {
                        *vector = Some(NewVector {
                            original: column.originals().row(row).to_vec(),
                            rotated: None,
                        });
                    }
                }
                let json = segment.payload().json_at(row, SeqNo::MAX)?;
                new.payload_json = json.map(|(_, json)| json.to_vec());
                Ok(new)
            })
            .collect()
    }

    /// Takes vectors away from points.
    pub(super) fn apply_delete_vectors(&mut self, seq: SeqNo, ids: &[PointId], names: &[String]) {
        let spec = Arc::clone(&self.spec);
        let places = names.iter().filter_map(|name| spec.vector_index(name));
        let places: Vec<usize> = places.collect();
        for id in ids {
            if let Some((index, row)) = self.live_row(*id) {
                for &place in &places {
                    self.writers[index].delete_vector(row, place, seq);
                }
            }
        }
        self.applied = seq;
    }

    /// Lists a field index. Segments that have one of another kind drop it; those without are served by
    /// the plain filter until theirs is built.
    pub(super) fn apply_field_index(&mut self, seq: SeqNo, record: &FieldIndexRecord) {
        for writer in &mut self.writers {
            let is_other =
                |(field, kind): (&str, _)| field == record.field && kind != record.field_type;
            if writer.indexed_fields().any(is_other) {
                writer.remove_field_index(&record.field);
            }
        }
        let mut schemas = FieldSchemas::clone(&self.schemas);
        schemas.insert(record.field.clone(), schema::from_record(record));
        self.schemas = Arc::new(schemas);
        self.applied = seq;
    }

    /// Builds the listed indexes that segments lack, before there is anybody to wait for them.
    pub(super) fn build_missing_indexes(&mut self) -> Result<()> {
        for writer in &mut self.writers {
            build_missing(writer, &self.schemas)?;
        }
        Ok(())
    }

    /// Drops a field index.
    pub(super) fn apply_drop_field_index(&mut self, seq: SeqNo, field: &str) {
        for writer in &mut self.writers {
            writer.remove_field_index(field);
        }
        let mut schemas = FieldSchemas::clone(&self.schemas);
        schemas.remove(field);
        self.schemas = Arc::new(schemas);
        self.applied = seq;
    }

    /// Applies an operation read from the log.
    pub(super) fn replay(&mut self, seq: SeqNo, op: LogOp) -> Result<()> {
        match op {
            LogOp::Upsert { names, points } => {
                let rows = self.rows_of(&names, points);
                let missing: Vec<NewRow> = rows
                    .into_iter()
                    .filter(|row| !self.holds(row.id, seq))
                    .collect();
                self.reserve_rows(&missing)?;
                self.apply_rows(seq, &missing)
            }
            LogOp::Delete(ids) => {
                self.apply_delete(seq, &ids);
                Ok(())
            }
            LogOp::EditPayload { ids, edit } => {
                let changes = self.plan_payload(seq, &ids, &edit.compile()?)?;
                self.apply_payload(seq, &changes);
                Ok(())
            }
            LogOp::DeleteVectors { ids, names } => {
                self.apply_delete_vectors(seq, &ids, &names);
                Ok(())
            }
            LogOp::CreateFieldIndex(record) => {
                self.apply_field_index(seq, &record);
                Ok(())
            }
            LogOp::DeleteFieldIndex(field) => {
                self.apply_drop_field_index(seq, &field);
                Ok(())
            }
        }
    }

    /// Whether any segment holds a row of `id` with this or a later `seq`; older live rows of it are
    /// stamped, since their stamp may not have been recorded.
    fn holds(&mut self, id: PointId, seq: SeqNo) -> bool {
        let mut holds = false;
        for writer in &mut self.writers {
            match writer.segment().newest(id) {
                Some((_, head)) if head.seq >= seq => holds = true,
                Some(_) => drop(writer.delete(id, seq)),
                None => {}
            }
        }
        holds
    }

    /// Rows in the order of the segment's vectors from points that name theirs.
    fn rows_of(&self, names: &[String], points: Vec<LoggedPoint>) -> Vec<NewRow> {
        let places: Vec<Option<usize>> = names
            .iter()
            .map(|name| self.spec.vector_index(name))
            .collect();
        let row_of = |point: LoggedPoint| {
            let mut vectors: Vec<Option<NewVector>> = vec![None; self.spec.vectors.len()];
            for (name, original) in point.vectors {
                // A name that the collection no longer has is left out.
                if let Some(place) = places.get(usize::from(name)).copied().flatten() {
                    vectors[place] = Some(NewVector {
                        original,
                        rotated: None,
                    });
                }
            }
            NewRow {
                id: point.id,
                vectors,
                payload_json: point.payload_json,
            }
        };
        points.into_iter().map(row_of).collect()
    }
}

/// Compiles a user's filter.
pub(crate) fn compile(filter: &Filter) -> Result<CompiledFilter> {
    CompiledFilter::new(filter).map_err(|error| EngineError::Invalid(error.to_string()))
}

/// Parses a payload path that a user gave.
pub(crate) fn parse_path(text: &str) -> Result<JsonPath> {
    JsonPath::parse(text).map_err(|error| EngineError::Invalid(error.to_string()))
}
