//! How an error is answered: HTTP code, text, and when to try again.

use flatwater_engine::error::EngineError;

use crate::error::{ApiError, Place};
pub use crate::kinds::GrpcCode;
use crate::kinds::codes_and_prefix;

/// Codes, text and, when a retry makes sense, how many seconds to wait before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// The same for gRPC.
    pub grpc: GrpcCode,
    /// What the user reads, prefix included.
    pub text: String,
    /// Value of `Retry-After`.
    pub retry_after_s: Option<u64>,
}

/// How an error is answered.
#[must_use]
pub fn refusal(error: &ApiError) -> Refusal {
    let (code, grpc) = match error {
        ApiError::Format(_)
        | ApiError::QueryFormat(_)
        | ApiError::Wrong(_)
        | ApiError::NotServed(_)
        | ApiError::BodyTooLarge { .. } => (400, GrpcCode::InvalidArgument),
        ApiError::BodyEncoding => (415, GrpcCode::InvalidArgument),
        ApiError::Validation {
            place: Place::Body | Place::Query | Place::Path,
            ..
        } => (422, GrpcCode::InvalidArgument),
        ApiError::Unauthorized(_) => (401, GrpcCode::Unauthenticated),
        ApiError::Forbidden(_) => (403, GrpcCode::PermissionDenied),
        ApiError::UnknownPath(_) => (404, GrpcCode::Unimplemented),
        ApiError::CallNotServed(_) => (400, GrpcCode::Unimplemented),
        ApiError::Timeout { .. } => (408, GrpcCode::DeadlineExceeded),
        ApiError::Unavailable(_) => (503, GrpcCode::Unavailable),
        ApiError::Internal(_) => (500, GrpcCode::Internal),
        ApiError::Engine(error) => {
            let (code, grpc, _) = codes_and_prefix(error.kind());
            (code, grpc)
        }
    };
    let retry_after_s = match error {
        ApiError::Engine(EngineError::Refused { retry_after_s, .. }) => Some(*retry_after_s),
        ApiError::Unavailable(_) | ApiError::Engine(EngineError::Stopping) => Some(1),
        _ => None,
    };
    Refusal {
        code,
        grpc,
        text: error.to_string(),
        retry_after_s,
    }
}

/// How an error of a gRPC call is answered: there is no JSON and no URL that a field stands in.
#[must_use]
pub fn grpc_refusal(error: &ApiError) -> Refusal {
    let mut refusal = refusal(error);
    match error {
        ApiError::Format(text) => refusal.text = format!("Format error in body: {text}"),
        ApiError::Validation { rules, .. } => {
            refusal.text = format!("Validation error in body: [{rules}]");
        }
        _ => {}
    }
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(error: impl Into<ApiError>) -> (u16, String) {
        let refusal = refusal(&error.into());
        (refusal.code, refusal.text)
    }

    #[test]
    fn engine_errors_get_qdrants_codes_and_prefix() {
        let path = || std::path::PathBuf::from("/data/x");
        let io = || std::io::Error::other("broken");
        let table: Vec<(EngineError, u16, &str)> = vec![
            (
                EngineError::Invalid("Vector dimension error: expected dim: 4, got 3".into()),
                400,
                "Wrong input: Vector dimension error: expected dim: 4, got 3",
            ),
            (
                EngineError::CollectionNotFound("x".into()),
                404,
                "Not found: Collection `x` doesn't exist!",
            ),
            (
                EngineError::CollectionExists("x".into()),
                409,
                "Wrong input: Collection `x` already exists!",
            ),
            (
                EngineError::PointNotFound("7".into()),
                404,
                "Not found: No point with id 7 found",
            ),
            (
                EngineError::Refused {
                    what: "search queue",
                    limit: 1024,
                    retry_after_s: 2,
                },
                429,
                "Rate limiting exceeded: search queue: limit 1024 reached, retry after 2 s",
            ),
            (
                EngineError::Timeout {
                    operation: "Search",
                    after_s: 1,
                },
                408,
                "Timeout: Operation 'Search' timed out after 1s",
            ),
            (
                EngineError::DiskFull {
                    path: path(),
                    needed_bytes: 9,
                },
                507,
                "Insufficient storage: not enough disk space at /data/x: needed 9 bytes",
            ),
            (
                EngineError::Io {
                    operation: "fsync",
                    path: path(),
                    source: io(),
                },
                500,
                "Service internal error: fsync of /data/x failed: broken",
            ),
            (
                EngineError::Corrupt {
                    file: "f".into(),
                    offset: 3,
                    detail: "d".into(),
                },
                500,
                "Service internal error: f is damaged at byte 3: d",
            ),
            (
                EngineError::Poisoned("fsync failed".into()),
                500,
                "Service internal error: writes are refused since an earlier failure: \
                 fsync failed; restart to recover from the log",
            ),
            (
                EngineError::Bug("b".into()),
                500,
                "Service internal error: internal error: b",
            ),
            (
                EngineError::Stopping,
                503,
                "Service unavailable: the server is stopping",
            ),
        ];
        for (error, code, text) in table {
            assert_eq!(answer(error), (code, text.to_owned()));
        }
    }

    #[test]
    fn own_errors_get_qdrants_codes_and_prefix() {
        let rules = "limit: value 0 invalid, must be 1 or larger".to_owned();
        let table: Vec<(ApiError, u16, &str)> = vec![
            (
                ApiError::Format("expected value at line 1 column 1".into()),
                400,
                "Format error in JSON body: expected value at line 1 column 1",
            ),
            (
                ApiError::QueryFormat("wait: `2`".into()),
                400,
                "Deserialize error in query parameters: wait: `2`",
            ),
            (
                ApiError::Validation {
                    place: Place::Body,
                    rules: rules.clone(),
                },
                422,
                "Validation error in JSON body: [limit: value 0 invalid, must be 1 or larger]",
            ),
            (
                ApiError::Validation {
                    place: Place::Query,
                    rules,
                },
                422,
                "Validation error in query parameters: \
                 [limit: value 0 invalid, must be 1 or larger]",
            ),
            (
                ApiError::NotServed("prefetch".into()),
                400,
                "Wrong input: `prefetch` is not served yet by this version of Flatwater",
            ),
            (
                ApiError::BodyTooLarge {
                    limit_mb: 32,
                    option: "service.max_request_size_mb",
                },
                400,
                "Wrong input: the body is larger than allowed \
                 (limit: 32 MB, set by service.max_request_size_mb)",
            ),
            (
                ApiError::UnknownPath("GET /x".into()),
                404,
                "Not found: there is no endpoint GET /x",
            ),
            (
                ApiError::Internal("a panic"),
                500,
                "Service internal error: a panic",
            ),
            (
                ApiError::Unavailable("starting"),
                503,
                "Service unavailable: starting",
            ),
            (
                ApiError::Timeout {
                    operation: "Search",
                    after_s: 3,
                },
                408,
                "Timeout: Operation 'Search' timed out after 3s",
            ),
        ];
        for (error, code, text) in table {
            assert_eq!(answer(error), (code, text.to_owned()));
        }
    }

    #[test]
    fn grpc_gets_qdrants_codes_and_the_same_words_without_json() {
        let rules = "limit: value 0 invalid, must be 1 or larger".to_owned();
        let place = Place::Query;
        let table: Vec<(ApiError, i32, &str)> = vec![
            (EngineError::Invalid("x".into()).into(), 3, "Wrong input: x"),
            (
                EngineError::CollectionNotFound("x".into()).into(),
                5,
                "Not found: Collection `x` doesn't exist!",
            ),
            (
                EngineError::CollectionExists("x".into()).into(),
                6,
                "Wrong input: Collection `x` already exists!",
            ),
            (
                EngineError::Stopping.into(),
                14,
                "Service unavailable: the server is stopping",
            ),
            (
                ApiError::Format("ids[0]: x".into()),
                3,
                "Format error in body: ids[0]: x",
            ),
            (
                ApiError::Validation { place, rules },
                3,
                "Validation error in body: [limit: value 0 invalid, must be 1 or larger]",
            ),
            (ApiError::Unauthorized("no key"), 16, "no key"),
            (ApiError::Forbidden("read only"), 7, "Forbidden: read only"),
            (
                ApiError::CallNotServed("Points/Search".to_owned()),
                12,
                "`Points/Search` is not served yet by this version of Flatwater",
            ),
            (
                ApiError::Timeout {
                    operation: "Search",
                    after_s: 3,
                },
                4,
                "Timeout: Operation 'Search' timed out after 3s",
            ),
        ];
        for (error, code, text) in table {
            let refusal = grpc_refusal(&error);
            assert_eq!(
                (refusal.grpc as i32, refusal.text.as_str()),
                (code, text),
                "{error:?}"
            );
        }
    }

    #[test]
    fn a_full_queue_says_when_to_come_back() {
        let full = EngineError::Refused {
            what: "search queue",
            limit: 1,
            retry_after_s: 3,
        };
        assert_eq!(refusal(&full.into()).retry_after_s, Some(3));
        assert_eq!(refusal(&ApiError::Wrong("x".into())).retry_after_s, None);
    }
}
