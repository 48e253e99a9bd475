//! One table: kind of error -> HTTP code and the words that Qdrant puts before its text.

use flatwater_engine::error::ErrorKind;

/// HTTP code and message prefix of an engine error.
pub(crate) const fn code_and_prefix(kind: ErrorKind) -> (u16, &'static str) {
    match kind {
        ErrorKind::Invalid => (400, "Wrong input: "),
        ErrorKind::NotFound => (404, "Not found: "),
        ErrorKind::Exists => (409, "Wrong input: "),
        ErrorKind::Refused => (429, "Rate limiting exceeded: "),
        ErrorKind::Timeout => (408, "Timeout: "),
        ErrorKind::Internal => (500, "Service internal error: "),
        ErrorKind::DiskFull => (507, "Insufficient storage: "),
        ErrorKind::Unavailable => (503, "Service unavailable: "),
    }
}

/// The words before the text of an engine error.
#[must_use]
pub(crate) fn prefix(kind: ErrorKind) -> &'static str {
    code_and_prefix(kind).1
}
