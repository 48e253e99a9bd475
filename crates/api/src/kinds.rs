//! One table: kind of error -> HTTP code, gRPC code, and the words that Qdrant puts before its text.

use flatwater_engine::error::ErrorKind;

/// Codes of gRPC that are answered, with their numbers on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcCode {
    /// The request is wrong.
    InvalidArgument = 3,
    /// Out of time.
    DeadlineExceeded = 4,
    /// It names what is not there.
    NotFound = 5,
    /// It would create what is there.
    AlreadyExists = 6,
    /// The key may not do this.
    PermissionDenied = 7,
    /// A limit was reached.
    ResourceExhausted = 8,
    /// No such call, or one that is not served yet.
    Unimplemented = 12,
    /// Our side failed.
    Internal = 13,
    /// Starting or stopping.
    Unavailable = 14,
    /// No key, or a wrong one.
    Unauthenticated = 16,
}

/// Codes and message prefix of an engine error.
pub(crate) const fn codes_and_prefix(kind: ErrorKind) -> (u16, GrpcCode, &'static str) {
    match kind {
        ErrorKind::Invalid => (400, GrpcCode::InvalidArgument, "Wrong input: "),
        ErrorKind::NotFound => (404, GrpcCode::NotFound, "Not found: "),
        ErrorKind::Exists => (409, GrpcCode::AlreadyExists, "Wrong input: "),
        ErrorKind::Refused => (429, GrpcCode::ResourceExhausted, "Rate limiting exceeded: "),
        ErrorKind::Timeout => (408, GrpcCode::DeadlineExceeded, "Timeout: "),
        ErrorKind::Internal => (500, GrpcCode::Internal, "Service internal error: "),
        ErrorKind::DiskFull => (507, GrpcCode::ResourceExhausted, "Insufficient storage: "),
        ErrorKind::Unavailable => (503, GrpcCode::Unavailable, "Service unavailable: "),
    }
}

/// The words before the text of an engine error.
#[must_use]
pub(crate) fn prefix(kind: ErrorKind) -> &'static str {
    codes_and_prefix(kind).2
}
