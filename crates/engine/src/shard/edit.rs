//! Changes of payloads: their form in the log, and the form that is applied.

use flatwater_segment::file::Damage;
use flatwater_segment::file::codec::{Decoder, Encoder};
use flatwater_segment::payload::Payload;
use flatwater_segment::payload::edit;
use flatwater_segment::payload::path::JsonPath;

use super::apply::parse_path;
use super::op::{decode_optional_text, decode_texts, encode_optional, encode_texts};
use crate::error::{EngineError, Result};

/// A change of payloads in the log.
#[derive(Clone, Debug, PartialEq)]
pub enum PayloadEdit {
    /// Merge a JSON object in.
    Set {
        /// JSON object.
        payload_json: Vec<u8>,
        /// Path inside the payload; `None` = the top.
        key: Option<String>,
    },
    /// Put a JSON object in the place of the payload.
    Overwrite {
        /// JSON object.
        payload_json: Vec<u8>,
    },
    /// Take out what these paths name.
    DeleteKeys(Vec<String>),
    /// Take out everything.
    Clear,
}

const SET: u8 = 3;
const OVERWRITE: u8 = 6;
const DELETE_KEYS: u8 = 7;
const CLEAR: u8 = 8;

impl PayloadEdit {
    /// First byte of its log record.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Self::Set { .. } => SET,
            Self::Overwrite { .. } => OVERWRITE,
            Self::DeleteKeys(_) => DELETE_KEYS,
            Self::Clear => CLEAR,
        }
    }

    /// Whether a log record with this first byte is a change of payloads.
    pub(super) fn is_kind(kind: u8) -> bool {
        matches!(kind, SET | OVERWRITE | DELETE_KEYS | CLEAR)
    }

    /// Appends what follows the ids in the record.
    pub(super) fn encode(&self, out: &mut Encoder) {
        match self {
            Self::Set { payload_json, key } => {
                out.bytes(payload_json);
                encode_optional(out, key.as_deref().map(str::as_bytes));
            }
            Self::Overwrite { payload_json } => out.bytes(payload_json),
            Self::DeleteKeys(keys) => encode_texts(out, keys),
            Self::Clear => {}
        }
    }

    /// Reads what follows the ids; `kind` is one of its kinds.
    pub(super) fn decode(kind: u8, input: &mut Decoder<'_>) -> std::result::Result<Self, Damage> {
        Ok(match kind {
            SET => Self::Set {
                payload_json: input.bytes()?.to_vec(),
                key: decode_optional_text(input)?,
            },
            OVERWRITE => Self::Overwrite {
                payload_json: input.bytes()?.to_vec(),
            },
            DELETE_KEYS => Self::DeleteKeys(decode_texts(input)?),
            _ => Self::Clear,
        })
    }

    /// About how much memory it holds, bytes.
    pub(super) fn size_bytes(&self) -> usize {
        match self {
            Self::Set { payload_json, .. } | Self::Overwrite { payload_json } => {
                payload_json.len() * 3
            }
            Self::DeleteKeys(keys) => keys.iter().map(String::len).sum(),
            Self::Clear => 0,
        }
    }

    /// Refuses paths that cannot be read and what no payload may become.
    pub(crate) fn check(&self) -> Result<()> {
        self.compile()?.check()
    }

    /// The form that is applied.
    ///
    /// # Errors
    /// `Invalid` for paths that cannot be read, `Bug` for JSON that is no object.
    pub(super) fn compile(&self) -> Result<CompiledEdit> {
        let object = |json: &[u8]| {
            serde_json::from_slice::<Payload>(json)
                .map_err(|error| EngineError::Bug(format!("logged payload: {error}")))
        };
        Ok(match self {
            Self::Set { payload_json, key } => CompiledEdit::Set {
                patch: object(payload_json)?,
                key: key.as_deref().map(parse_path).transpose()?,
            },
            Self::Overwrite { payload_json } => CompiledEdit::Overwrite(object(payload_json)?),
            Self::DeleteKeys(keys) => {
                let paths = keys.iter().map(|key| parse_path(key));
                CompiledEdit::DeleteKeys(paths.collect::<Result<_>>()?)
            }
            Self::Clear => CompiledEdit::Overwrite(Payload::new()),
        })
    }
}

/// A change of payloads that is ready to be applied.
#[derive(Debug)]
pub(super) enum CompiledEdit {
    Set {
        patch: Payload,
        key: Option<JsonPath>,
    },
    Overwrite(Payload),
    DeleteKeys(Vec<JsonPath>),
}

impl CompiledEdit {
    /// Whether the new payload depends on the old one.
    pub(super) fn needs_old(&self) -> bool {
        !matches!(self, Self::Overwrite(_))
    }

    /// The payload after the change.
    pub(super) fn apply(&self, mut payload: Payload) -> Payload {
        match self {
            Self::Set { patch, key } => edit::set(&mut payload, patch.clone(), key.as_ref()),
            Self::Overwrite(new) => payload.clone_from(new),
            Self::DeleteKeys(keys) => edit::remove_keys(&mut payload, keys),
        }
        payload
    }

    /// Refuses what no payload may become.
    pub(super) fn check(&self) -> Result<()> {
        let checked = match self {
            Self::Set { patch, key } => edit::check_set(patch, key.as_ref()),
            Self::Overwrite(payload) => edit::check_payload(payload),
            Self::DeleteKeys(_) => Ok(()),
        };
        checked.map_err(|error| EngineError::Invalid(error.to_string()))
    }
}
