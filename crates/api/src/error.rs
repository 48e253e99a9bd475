//! Why a request is refused.

use flatwater_engine::error::EngineError;

/// Part of a request that a rule was broken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The JSON body.
    Body,
    /// The part of the URL behind `?`.
    Query,
    /// The path of the URL.
    Path,
}

impl Place {
    /// As it stands in Qdrant's messages.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Body => "JSON body",
            Self::Query => "query parameters",
            Self::Path => "path parameters",
        }
    }
}

/// A refusal. The text is what the user reads, see [`crate::status::refusal`] for its code.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Not JSON, or JSON of another type than expected.
    #[error("Format error in JSON body: {0}")]
    Format(String),
    /// A query parameter of the wrong type.
    #[error("Deserialize error in query parameters: {0}")]
    QueryFormat(String),
    /// Values outside their ranges; `rules` is a list joined by `; `.
    #[error("Validation error in {}: [{rules}]", place.text())]
    Validation {
        /// Where.
        place: Place,
        /// What must hold.
        rules: String,
    },
    /// Input that makes no sense.
    #[error("Wrong input: {0}")]
    Wrong(String),
    /// Known to Qdrant, not served by this version.
    #[error("Wrong input: `{0}` is not served yet by this version of Flatwater")]
    NotServed(String),
    /// The body or message is longer than allowed.
    #[error("Wrong input: the body is larger than allowed (limit: {limit_mb} MB, set by {option})")]
    BodyTooLarge {
        /// The limit.
        limit_mb: usize,
        /// The option that sets it.
        option: &'static str,
    },
    /// The body is compressed in a way that is not read.
    #[error("Wrong input: content-encoding is not served; expected gzip or none")]
    BodyEncoding,
    /// No API key, or one that is none of ours.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// The API key is known and may not do this.
    #[error("Forbidden: {0}")]
    Forbidden(&'static str),
    /// A call of gRPC's that Qdrant has and this version does not serve.
    #[error("`{0}` is not served yet by this version of Flatwater")]
    CallNotServed(String),
    /// No such path or method.
    #[error("Not found: there is no endpoint {0}")]
    UnknownPath(String),
    /// The time limit of the request passed.
    #[error("Timeout: Operation '{operation}' timed out after {after_s}s")]
    Timeout {
        /// What was running.
        operation: &'static str,
        /// The limit.
        after_s: u64,
    },
    /// Not now: starting or stopping.
    #[error("Service unavailable: {0}")]
    Unavailable(&'static str),
    /// A bug of ours.
    #[error("Service internal error: {0}")]
    Internal(&'static str),
    /// The engine refused or failed.
    #[error("{words}{0}", words = crate::kinds::prefix(.0.kind()))]
    Engine(#[from] EngineError),
}

impl ApiError {
    /// The same refusal of a part of a body; `place` says which part.
    #[must_use]
    pub(crate) fn within(self, place: &str) -> Self {
        match self {
            Self::Format(text) => Self::Format(format!("{place}: {text}")),
            Self::Wrong(text) => Self::Wrong(format!("{place}: {text}")),
            Self::NotServed(field) => Self::NotServed(format!("{place}.{field}")),
            Self::Validation { place: of, rules } => Self::Validation {
                place: of,
                rules: format!("{place}.{rules}"),
            },
            other => other,
        }
    }
}

/// Result of a conversion.
pub type Result<T> = std::result::Result<T, ApiError>;
