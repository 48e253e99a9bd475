//! API keys: who may read, who may write.
//!
//! 1. Without a configured key everybody may do everything.
//! 2. `api_key` and `alt_api_key` may do everything, `read_only_api_key` may read.
//! 3. A key comes in the header (or metadata) `api-key`, else in `authorization` behind `Bearer`.
//!    All configured keys are compared with it, in a time that depends on none of their contents.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use flatwater_api::error::{ApiError, Result};
use subtle::{Choice, ConstantTimeEq};

use crate::options::Service;

/// Header that carries the key, as in Qdrant.
const API_KEY: &str = "api-key";

/// What precedes a key in `authorization`.
const BEARER: &[u8] = b"Bearer ";

/// What a request is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing that is guarded.
    Nothing,
    /// Read.
    Read,
    /// Anything else.
    Write,
}

/// Checks the key of a request.
pub(crate) fn check(service: &Service, headers: &HeaderMap, need: Need) -> Result<()> {
    let is_guarded = service.is_guarded();
    if !is_guarded || need == Need::Nothing {
        return Ok(());
    }
    let Some(given) = key_of(headers) else {
        return Err(ApiError::Unauthorized(
            "Must provide an API key or an Authorization bearer token",
        ));
    };
    let matches = |key: &Option<crate::options::ApiKey>| {
        let equal = key.as_ref().map(|key| key.reveal().as_bytes().ct_eq(given));
        equal.unwrap_or(Choice::from(0))
    };
    let may_write = matches(&service.api_key) | matches(&service.alt_api_key);
    let may_read = may_write | matches(&service.read_only_api_key);
    if !bool::from(may_read) {
        return Err(ApiError::Unauthorized("Invalid API key or JWT"));
    }
    if need == Need::Write && !bool::from(may_write) {
        return Err(ApiError::Forbidden(
            "this API key is read-only; writing needs service.api_key",
        ));
    }
    Ok(())
}

/// The key that came with a request.
fn key_of(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(key) = headers.get(API_KEY) {
        return Some(key.as_bytes());
    }
    headers.get(AUTHORIZATION)?.as_bytes().strip_prefix(BEARER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{ApiKey, Options};

    fn service(keys: [&str; 3]) -> Service {
        let [api, alt, read_only] = keys.map(|key| (!key.is_empty()).then(|| ApiKey::new(key)));
        Service {
            api_key: api,
            alt_api_key: alt,
            read_only_api_key: read_only,
            ..Options::built_in().service
        }
    }

    fn code(service: &Service, header: (&'static str, &str), need: Need) -> u16 {
        let mut headers = HeaderMap::new();
        if !header.0.is_empty() {
            headers.insert(header.0, header.1.parse().unwrap());
        }
        match check(service, &headers, need) {
            Ok(()) => 200,
            Err(error) => flatwater_api::status::refusal(&error).code,
        }
    }

    #[test]
    fn each_key_may_do_what_it_is_for() {
        let guarded = service(["main", "other", "reader"]);
        for (header, read, write) in [
            (("api-key", "main"), 200, 200),
            (("api-key", "other"), 200, 200),
            (("api-key", "reader"), 200, 403),
            (("authorization", "Bearer main"), 200, 200),
            (("authorization", "Bearer reader"), 200, 403),
            (("authorization", "Basic main"), 401, 401),
            (("authorization", "main"), 401, 401),
            (("api-key", "mai"), 401, 401),
            (("api-key", "main "), 401, 401),
            (("api-key", "MAIN"), 401, 401),
            (("api-key", ""), 401, 401),
            (("", ""), 401, 401),
        ] {
            assert_eq!(code(&guarded, header, Need::Read), read, "{header:?}");
            assert_eq!(code(&guarded, header, Need::Write), write, "{header:?}");
            assert_eq!(code(&guarded, header, Need::Nothing), 200, "{header:?}");
        }
    }

    #[test]
    fn one_key_of_any_kind_closes_the_door_and_none_leaves_it_open() {
        assert_eq!(code(&service(["", "", ""]), ("", ""), Need::Write), 200);
        for keys in [["k", "", ""], ["", "k", ""], ["", "", "k"]] {
            assert_eq!(code(&service(keys), ("", ""), Need::Read), 401, "{keys:?}");
        }
        assert_eq!(
            code(&service(["", "", "k"]), ("api-key", "k"), Need::Write),
            403
        );
    }

    #[test]
    fn a_key_is_never_shown() {
        let shown = format!("{:?}", service(["hunter2", "hunter2", "hunter2"]));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
