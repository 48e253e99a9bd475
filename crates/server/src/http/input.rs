//! A request as handlers get it: parts of the path, query parameters, body with a limit.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use flatwater_api::error::{ApiError, Place, Result};
use http_body_util::BodyExt;

use super::reply;
use crate::app::updates::Wishes;

/// Bytes in a megabyte of `service.max_request_size_mb`.
const MB: usize = 1_048_576;

/// How long, and for how many times the limit, a body that is too large is read on and dropped, so
/// that its sender gets to the answer instead of a broken connection.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
const DRAIN_LIMITS_MAX: usize = 8;

/// One request.
#[derive(Debug)]
pub(crate) struct Input {
    /// When its head had arrived.
    pub(crate) started: Instant,
    path: Vec<String>,
    query: Vec<(String, String)>,
    body: Body,
    content_length: Option<usize>,
    expects_continue: bool,
}

impl<S: Send + Sync> FromRequest<S> for Input {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> std::result::Result<Self, Response> {
        let started = Instant::now();
        let (mut parts, body) = request.into_parts();
        let path = path_of(&mut parts, state)
            .await
            .map_err(|error| reply::envelope(started, Err(error)))?;
        let query = parts.uri.query().unwrap_or_default();
        let length = parts
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok());
        Ok(Self {
            started,
            path,
            query: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            body,
            content_length: length.and_then(|text| text.parse().ok()),
            expects_continue: parts.headers.contains_key(EXPECT),
        })
    }
}

/// Captured parts of the path, percent-decoded.
async fn path_of<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Vec<String>> {
    match RawPathParams::from_request_parts(parts, state).await {
        Ok(captured) => Ok(captured.iter().map(|(_, value)| value.to_owned()).collect()),
        Err(_) => Err(ApiError::Wrong(
            "the path of the URL is not UTF-8".to_owned(),
        )),
    }
}

impl Input {
    /// The `n`-th captured part of the path.
    pub(crate) fn part(&self, n: usize) -> String {
        self.path.get(n).cloned().unwrap_or_default()
    }

    /// A query parameter as it was given.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// A boolean query parameter, false when absent.
    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(wrong_parameter(name, other, "`true` or `false`")),
        }
    }

    /// A query parameter that counts.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>> {
        self.text(name)
            .map(|text| {
                text.parse()
                    .map_err(|_| wrong_parameter(name, text, "an unsigned integer"))
            })
            .transpose()
    }

    /// The time limit in seconds, at least 1.
    pub(crate) fn timeout_s(&self) -> Result<Option<u64>> {
        match self.count("timeout")? {
            Some(0) => {
                let rules = "timeout: value 0 invalid, must be 1 or larger".to_owned();
                Err(ApiError::Validation {
                    place: Place::Query,
                    rules,
                })
            }
            timeout => Ok(timeout),
        }
    }

    /// `ordering`: there is one writer a shard, so every order asked for is the one there is.
    fn check_ordering(&self) -> Result<()> {
        match self.text("ordering") {
            None | Some("weak" | "medium" | "strong") => Ok(()),
            Some(other) => Err(wrong_parameter(
                "ordering",
                other,
                "`weak`, `medium` or `strong`",
            )),
        }
    }

    /// How an update is wanted: `wait`, `timeout` and `ordering`.
    pub(crate) fn wishes(&self) -> Result<Wishes> {
        self.check_ordering()?;
        Ok(Wishes {
            wait: self.flag("wait")?,
            timeout_s: self.timeout_s()?,
        })
    }

    /// `consistency`: there is one copy of a shard, which agrees with itself.
    pub(crate) fn check_consistency(&self) -> Result<()> {
        match self.text("consistency") {
            None | Some("majority" | "quorum" | "all") => Ok(()),
            Some(text) if text.parse::<u64>().is_ok_and(|n| n > 0) => Ok(()),
            Some(other) => {
                let expected = "`majority`, `quorum`, `all` or a number above 0";
                Err(wrong_parameter("consistency", other, expected))
            }
        }
    }

    /// The whole body.
    pub(crate) async fn body(self, limit_mb: usize) -> Result<Bytes> {
        let limit = limit_mb.saturating_mul(MB);
        let mut body = self.body;
        if self.content_length.is_some_and(|length| length > limit) {
            // Whoever asks before sending needs no draining: the answer comes first.
            if !self.expects_continue {
                drain(body, limit).await;
            }
            return Err(too_large(limit_mb));
        }
        let mut whole = Vec::with_capacity(self.content_length.unwrap_or_default());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| {
                ApiError::Format(
                    "the body ended before its announced length, or is not compressed as announced"
                        .to_owned(),
                )
            })?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if whole.len() + data.len() > limit {
                drain(body, limit).await;
                return Err(too_large(limit_mb));
            }
            whole.extend_from_slice(&data);
        }
        Ok(Bytes::from(whole))
    }
}

fn too_large(limit_mb: usize) -> ApiError {
    ApiError::BodyTooLarge {
        limit_mb,
        option: "service.max_request_size_mb",
    }
}

/// Reads on and drops what comes, within bounds.
async fn drain(mut body: Body, limit: usize) {
    let mut left = limit.saturating_mul(DRAIN_LIMITS_MAX);
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    // Either way the answer follows.
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, reading).await;
}

fn wrong_parameter(name: &str, value: &str, expected: &str) -> ApiError {
    let shown: String = value.chars().take(60).collect();
    ApiError::QueryFormat(format!(
        "{name}: invalid value `{shown}`, expected {expected}"
    ))
}
