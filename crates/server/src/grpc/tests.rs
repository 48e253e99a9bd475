//! The interface without an engine behind it, spoken to by the messages of the wire. The rest is
//! tested with a real client from outside.

use axum::http::Request;
use http_body_util::BodyExt;
use tonic::{Code, Status};
use tower::ServiceExt;

use super::*;
use crate::app::App;
use crate::options::{ApiKey, Options};

fn call_with(options: Options, path: &str, message: &[u8], key: Option<&str>) -> (Status, Vec<u8>) {
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend_from_slice(message);
    let mut request = Request::post(path).header("content-type", "application/grpc");
    if let Some(key) = key {
        request = request.header("api-key", key);
    }
    let request = request.body(Body::from(framed)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let router = router(App::starting(options, 2));
        let response: Response<Body> = router.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap();
        let trailers = body.trailers().cloned().unwrap_or_default();
        let status = Status::from_header_map(&parts.headers)
            .or_else(|| Status::from_header_map(&trailers))
            .expect("a call ends with a status");
        (status, body.to_bytes().to_vec())
    })
}

fn call(path: &str, message: &[u8]) -> (Status, Vec<u8>) {
    call_with(Options::built_in(), path, message, None)
}

#[test]
fn who_the_server_is_is_told_before_it_is_ready() {
    let (status, body) = call("/qdrant.Qdrant/HealthCheck", &[]);
    assert_eq!(status.code(), Code::Ok);
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains("qdrant - vector search engine") && text.contains("1.19.0"));
}

#[test]
fn the_health_service_says_not_serving_until_the_engine_is_open() {
    let (status, body) = call("/grpc.health.v1.Health/Check", &[]);
    assert_eq!(status.code(), Code::Ok);
    // Field 1, the enum NOT_SERVING = 2, behind the five bytes of the frame.
    assert_eq!(body[5..], [8, 2]);
    let (status, _) = call("/grpc.health.v1.Health/Check", b"\x0a\x01x");
    assert_eq!(status.code(), Code::NotFound);
}

#[test]
fn while_starting_calls_are_unavailable_and_say_when_to_come_back() {
    for path in [
        "/qdrant.Collections/List",
        "/qdrant.Collections/Get",
        "/qdrant.Points/Query",
        "/qdrant.Points/Upsert",
    ] {
        let (status, _) = call(path, &[]);
        assert_eq!(status.code(), Code::Unavailable, "{path}");
        assert!(
            status
                .message()
                .starts_with("Service unavailable: the server is starting")
        );
        assert_eq!(status.metadata().get("retry-after").unwrap(), "1");
    }
}

#[test]
fn calls_that_are_not_served_are_unimplemented_by_name() {
    for (path, text) in [
        ("/qdrant.Points/Facet", "`Points/Facet` is not served yet"),
        (
            "/qdrant.Points/QueryGroups",
            "`Points/QueryGroups` is not served yet",
        ),
        (
            "/qdrant.Collections/CreateShardKey",
            "`Collections/CreateShardKey` is not served yet",
        ),
        (
            "/qdrant.Snapshots/Create",
            "`Snapshots/Create` is not served yet",
        ),
        ("/some.Other/Call", "there is no endpoint /some.Other/Call"),
    ] {
        let (status, _) = call(path, &[]);
        assert_eq!(status.code(), Code::Unimplemented, "{path}");
        assert!(status.message().contains(text), "{}", status.message());
    }
}

#[test]
fn bytes_that_are_no_message_are_the_senders_fault() {
    let (status, _) = call("/qdrant.Points/Query", &[0xFF, 0xFF, 0xFF]);
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().starts_with("Format error in body: "),
        "{}",
        status.message()
    );
}

#[test]
fn a_message_over_the_limit_is_refused_with_the_option_that_sets_it() {
    let mut options = Options::built_in();
    options.service.max_grpc_message_size_mb = 1;
    // Field 1000 of bytes, unknown to the message and skipped by its reader.
    let message = |len: usize| {
        let mut message = vec![0xC2, 0x3E];
        let mut left = len;
        while left >= 0x80 {
            message.push((left & 0x7F) as u8 | 0x80);
            left >>= 7;
        }
        message.push(left as u8);
        message.resize(message.len() + len, 0);
        message
    };
    let path = "/qdrant.Qdrant/HealthCheck";
    let (status, _) = call_with(options.clone(), path, &message(1_000_000), None);
    assert_eq!(status.code(), Code::Ok, "{}", status.message());
    let (status, _) = call_with(options, path, &message(1_100_000), None);
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "Wrong input: the body is larger than allowed \
         (limit: 1 MB, set by service.max_grpc_message_size_mb)"
    );
}

#[test]
fn keys_are_checked_before_anything_else() {
    let mut options = Options::built_in();
    options.service.api_key = Some(ApiKey::new("writer"));
    options.service.read_only_api_key = Some(ApiKey::new("reader"));
    for (path, key, code) in [
        ("/qdrant.Qdrant/HealthCheck", None, Code::Ok),
        ("/grpc.health.v1.Health/Check", None, Code::Ok),
        ("/qdrant.Collections/List", None, Code::Unauthenticated),
        ("/qdrant.Collections/List", Some("x"), Code::Unauthenticated),
        (
            "/qdrant.Collections/List",
            Some("reader"),
            Code::Unavailable,
        ),
        (
            "/qdrant.Collections/Create",
            Some("reader"),
            Code::PermissionDenied,
        ),
        (
            "/qdrant.Points/Upsert",
            Some("reader"),
            Code::PermissionDenied,
        ),
        ("/qdrant.Points/Upsert", Some("writer"), Code::Unavailable),
        ("/some.Other/Call", None, Code::Unauthenticated),
    ] {
        let (status, _) = call_with(options.clone(), path, &[], key);
        assert_eq!(status.code(), code, "{path} {key:?}");
    }
}
