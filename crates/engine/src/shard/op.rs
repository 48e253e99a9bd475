//! What the log holds: operations with everything resolved, and their bytes.
//!
//! Filters are ids by now, vectors are as they are stored, equal ids are reduced to the last, so
//! that replay depends on nothing but the record. Byte map: docs/on-disk-format.md.

use flatwater_segment::PointId;
use flatwater_segment::field::FieldType;
use flatwater_segment::file::Damage;
use flatwater_segment::file::codec::{Decoder, Encoder};
use flatwater_segment::growing::write::NewRow;

pub use super::edit::PayloadEdit;

/// A resolved operation.
#[derive(Clone, Debug, PartialEq)]
pub enum LogOp {
    /// Store points, each as a whole.
    Upsert {
        /// Names of the vectors that the points refer to by place.
        names: Vec<String>,
        /// The points; no id twice.
        points: Vec<LoggedPoint>,
    },
    /// Delete these points.
    Delete(Vec<PointId>),
    /// Change the payload of these points.
    EditPayload {
        /// Which points.
        ids: Vec<PointId>,
        /// How.
        edit: PayloadEdit,
    },
    /// Take vectors away from these points.
    DeleteVectors {
        /// Which points.
        ids: Vec<PointId>,
        /// Names of vectors.
        names: Vec<String>,
    },
    /// Index a field.
    CreateFieldIndex(FieldIndexRecord),
    /// Drop a field's index.
    DeleteFieldIndex(String),
}

/// A point in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedPoint {
    /// Id.
    pub id: PointId,
    /// Place of the name, and the vector.
    pub vectors: Vec<(u16, Vec<f32>)>,
    /// JSON object, `None` for an empty one.
    pub payload_json: Option<Vec<u8>>,
}

/// A field index in the log and in the manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldIndexRecord {
    /// Payload path.
    pub field: String,
    /// Type.
    pub field_type: FieldType,
    /// JSON object of parameters as the user gave it.
    pub params_json: Option<Vec<u8>>,
}

const UPSERT: u8 = 1;
const DELETE: u8 = 2;
const CREATE_FIELD_INDEX: u8 = 4;
const DELETE_FIELD_INDEX: u8 = 5;
const DELETE_VECTORS: u8 = 9;

const ID_NUM: u8 = 0;
const ID_UUID: u8 = 1;

/// Fewest bytes of a stored id: its kind and a `u64`.
const ID_BYTES_MIN: usize = 9;

impl LogOp {
    /// The bytes of the record's body.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        match self {
            Self::Upsert { names, points } => encode_upsert(&mut out, names, points),
            Self::Delete(ids) => {
                out.u8(DELETE);
                encode_ids(&mut out, ids);
            }
            Self::EditPayload { ids, edit } => {
                out.u8(edit.kind());
                encode_ids(&mut out, ids);
                edit.encode(&mut out);
            }
            Self::DeleteVectors { ids, names } => {
                out.u8(DELETE_VECTORS);
                encode_ids(&mut out, ids);
                encode_texts(&mut out, names);
            }
            Self::CreateFieldIndex(record) => {
                out.u8(CREATE_FIELD_INDEX);
                record.encode(&mut out);
            }
            Self::DeleteFieldIndex(field) => {
                out.u8(DELETE_FIELD_INDEX);
                out.str(field);
            }
        }
        out.into_bytes()
    }

    /// Reads a body back.
    ///
    /// # Errors
    /// [`Damage`] if the bytes are not an operation.
    pub fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let mut input = Decoder::new(bytes);
        let op = match input.u8()? {
            UPSERT => decode_upsert(&mut input)?,
            DELETE => Self::Delete(decode_ids(&mut input)?),
            kind if PayloadEdit::is_kind(kind) => Self::EditPayload {
                ids: decode_ids(&mut input)?,
                edit: PayloadEdit::decode(kind, &mut input)?,
            },
            DELETE_VECTORS => Self::DeleteVectors {
                ids: decode_ids(&mut input)?,
                names: decode_texts(&mut input)?,
            },
            CREATE_FIELD_INDEX => Self::CreateFieldIndex(FieldIndexRecord::decode(&mut input)?),
            DELETE_FIELD_INDEX => Self::DeleteFieldIndex(input.str()?.to_owned()),
            kind => {
                return Err(input.damage(
                    "kind of operation",
                    u64::from(DELETE_VECTORS),
                    u64::from(kind),
                ));
            }
        };
        input.finish()?;
        Ok(op)
    }
}

impl FieldIndexRecord {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Encoder) {
        out.str(&self.field);
        out.u8(match self.field_type {
            FieldType::Keyword => 0,
            FieldType::Integer => 1,
            FieldType::Float => 2,
            FieldType::Bool => 3,
            FieldType::Datetime => 4,
            FieldType::Uuid => 5,
        });
        encode_optional(out, self.params_json.as_deref());
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`Damage`] if the bytes are not a field index.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self, Damage> {
        let field = input.str()?.to_owned();
        let field_type = match input.u8()? {
            0 => FieldType::Keyword,
            1 => FieldType::Integer,
            2 => FieldType::Float,
            3 => FieldType::Bool,
            4 => FieldType::Datetime,
            5 => FieldType::Uuid,
            other => return Err(input.damage("type of field index", 5, u64::from(other))),
        };
        let params_json = decode_optional(input)?.map(<[u8]>::to_vec);
        Ok(Self {
            field,
            field_type,
            params_json,
        })
    }
}

/// The body of an upsert of `rows`, whose vectors stand in the order of `names`: the same bytes as
/// [`LogOp::Upsert`] gives, without a copy of the vectors.
#[must_use]
pub fn encode_rows(names: &[String], rows: &[NewRow]) -> Vec<u8> {
    let floats: usize = rows
        .iter()
        .flat_map(|row| row.vectors.iter().flatten())
        .map(|v| v.original.len())
        .sum();
    let mut out = Encoder::with_capacity(floats * 4 + rows.len() * 64);
    upsert_header(&mut out, names, rows.len());
    for row in rows {
        let present = || {
            (0u16..)
                .zip(&row.vectors)
                .filter_map(|(i, v)| v.as_ref().map(|v| (i, v)))
        };
        upsert_point(
            &mut out,
            row.id,
            present().count(),
            present().map(|(i, vector)| (i, vector.original.as_slice())),
            row.payload_json.as_deref(),
        );
    }
    out.into_bytes()
}

fn encode_upsert(out: &mut Encoder, names: &[String], points: &[LoggedPoint]) {
    upsert_header(out, names, points.len());
    for point in points {
        let vectors = point
            .vectors
            .iter()
            .map(|(name, vector)| (*name, vector.as_slice()));
        upsert_point(
            out,
            point.id,
            point.vectors.len(),
            vectors,
            point.payload_json.as_deref(),
        );
    }
}

fn upsert_header(out: &mut Encoder, names: &[String], points: usize) {
    out.u8(UPSERT);
    out.u64(names.len() as u64);
    for name in names {
        out.str(name);
    }
    out.u64(points as u64);
}

fn upsert_point<'a>(
    out: &mut Encoder,
    id: PointId,
    vectors_len: usize,
    vectors: impl Iterator<Item = (u16, &'a [f32])>,
    payload_json: Option<&[u8]>,
) {
    encode_id(out, id);
    out.u16(vectors_len as u16);
    for (name, vector) in vectors {
        out.u16(name);
        out.slice(vector);
    }
    encode_optional(out, payload_json);
}

fn decode_upsert(input: &mut Decoder<'_>) -> Result<LogOp, Damage> {
    let names = (0..input.count(4)?)
        .map(|_| input.str().map(str::to_owned))
        .collect::<Result<Vec<_>, _>>()?;
    let count = input.count(ID_BYTES_MIN + 3)?;
    let mut points = Vec::with_capacity(count);
    for _ in 0..count {
        let id = decode_id(input)?;
        let mut vectors = Vec::new();
        for _ in 0..input.u16()? {
            let name = input.u16()?;
            if usize::from(name) >= names.len() {
                return Err(input.damage("name of vector", names.len() as u64, u64::from(name)));
            }
            vectors.push((name, input.vec()?));
        }
        points.push(LoggedPoint {
            id,
            vectors,
            payload_json: decode_optional(input)?.map(<[u8]>::to_vec),
        });
    }
    Ok(LogOp::Upsert { names, points })
}

pub(super) fn encode_texts(out: &mut Encoder, texts: &[String]) {
    out.u64(texts.len() as u64);
    for text in texts {
        out.str(text);
    }
}

pub(super) fn decode_texts(input: &mut Decoder<'_>) -> Result<Vec<String>, Damage> {
    (0..input.count(8)?)
        .map(|_| input.str().map(str::to_owned))
        .collect()
}

fn encode_ids(out: &mut Encoder, ids: &[PointId]) {
    out.u64(ids.len() as u64);
    for id in ids {
        encode_id(out, *id);
    }
}

fn decode_ids(input: &mut Decoder<'_>) -> Result<Vec<PointId>, Damage> {
    (0..input.count(ID_BYTES_MIN)?)
        .map(|_| decode_id(input))
        .collect()
}

fn encode_id(out: &mut Encoder, id: PointId) {
    match id {
        PointId::Num(n) => {
            out.u8(ID_NUM);
            out.u64(n);
        }
        PointId::Uuid(u) => {
            out.u8(ID_UUID);
            out.u128(u);
        }
    }
}

fn decode_id(input: &mut Decoder<'_>) -> Result<PointId, Damage> {
    match input.u8()? {
        ID_NUM => Ok(PointId::Num(input.u64()?)),
        ID_UUID => Ok(PointId::Uuid(input.u128()?)),
        kind => Err(input.damage("kind of id", 1, u64::from(kind))),
    }
}

pub(super) fn encode_optional(out: &mut Encoder, bytes: Option<&[u8]>) {
    out.bool(bytes.is_some());
    if let Some(bytes) = bytes {
        out.bytes(bytes);
    }
}

fn decode_optional<'a>(input: &mut Decoder<'a>) -> Result<Option<&'a [u8]>, Damage> {
    if input.bool()? {
        input.bytes().map(Some)
    } else {
        Ok(None)
    }
}

pub(super) fn decode_optional_text(input: &mut Decoder<'_>) -> Result<Option<String>, Damage> {
    if input.bool()? {
        input.str().map(|text| Some(text.to_owned()))
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<LogOp> {
        let edit = |edit| LogOp::EditPayload {
            ids: vec![PointId::Num(3)],
            edit,
        };
        vec![
            LogOp::Upsert {
                names: vec![String::new(), "image".to_owned()],
                points: vec![
                    LoggedPoint {
                        id: PointId::Num(u64::MAX),
                        vectors: vec![(0, vec![1.5, -2.0]), (1, vec![0.25])],
                        payload_json: Some(b"{\"a\":1}".to_vec()),
                    },
                    LoggedPoint {
                        id: PointId::Uuid(7),
                        vectors: vec![],
                        payload_json: None,
                    },
                ],
            },
            LogOp::Delete(vec![PointId::Num(0), PointId::Uuid(u128::MAX)]),
            edit(PayloadEdit::Set {
                payload_json: b"{}".to_vec(),
                key: Some("a.b".to_owned()),
            }),
            edit(PayloadEdit::Overwrite {
                payload_json: b"{\"a\":[]}".to_vec(),
            }),
            edit(PayloadEdit::DeleteKeys(vec![
                "a".to_owned(),
                "b[].c".to_owned(),
            ])),
            edit(PayloadEdit::Clear),
            LogOp::DeleteVectors {
                ids: vec![PointId::Num(3)],
                names: vec![String::new(), "image".to_owned()],
            },
            LogOp::CreateFieldIndex(FieldIndexRecord {
                field: "city".to_owned(),
                field_type: FieldType::Keyword,
                params_json: Some(b"{\"is_tenant\":true}".to_vec()),
            }),
            LogOp::DeleteFieldIndex("city".to_owned()),
        ]
        .into_iter()
        .chain(FieldType::ALL.map(|field_type| {
            LogOp::CreateFieldIndex(FieldIndexRecord {
                field: "a[].b".to_owned(),
                field_type,
                params_json: None,
            })
        }))
        .collect()
    }

    #[test]
    fn each_type_of_field_index_keeps_its_byte() {
        for (byte, field_type) in (0..).zip(FieldType::ALL) {
            let mut out = Encoder::new();
            let record = FieldIndexRecord {
                field: String::new(),
                field_type,
                params_json: None,
            };
            record.encode(&mut out);
            let bytes = out.into_bytes();
            assert_eq!(bytes[bytes.len() - 2], byte, "{field_type:?}");
        }
    }

    #[test]
    fn every_operation_reads_back_as_it_was_written() {
        for op in samples() {
            assert_eq!(LogOp::decode(&op.encode()).unwrap(), op);
        }
    }

    #[test]
    fn bytes_cut_short_or_run_on_are_refused_and_never_panic() {
        for op in samples() {
            let bytes = op.encode();
            for len in 0..bytes.len() {
                assert!(LogOp::decode(&bytes[..len]).is_err(), "{op:?} cut at {len}");
            }
            let mut longer = bytes.clone();
            longer.push(0);
            assert!(LogOp::decode(&longer).is_err());
        }
    }
}
