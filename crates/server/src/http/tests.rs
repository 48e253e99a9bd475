//! The interface without an engine behind it: what is answered before collections are loaded, and
//! everything that never reaches the engine. The rest is tested with a real client from outside.

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::get;
use flatwater_api::error::ApiError;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::app::App;
use crate::options::Options;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn call(method: &str, target: &str) -> (StatusCode, Response, String) {
    block_on(async {
        let app = App::starting(Options::built_in(), 2);
        let request = Request::builder()
            .method(method)
            .uri(target)
            .body(Body::empty())
            .unwrap();
        let response = service(app).oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let status = parts.status;
        (status, Response::from_parts(parts, Body::empty()), text)
    })
}

fn error_of(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap();
    assert!(value["time"].is_number(), "{text}");
    value["status"]["error"].as_str().unwrap().to_owned()
}

#[test]
fn root_says_what_clients_compare_and_the_header_says_our_version() {
    let (code, response, text) = call("GET", "/");
    assert_eq!(code, StatusCode::OK);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["title"], json!("qdrant - vector search engine"));
    assert_eq!(value["version"], json!("1.19.0"));
    assert_eq!(
        response.headers()["x-flatwater-version"],
        env!("CARGO_PKG_VERSION")
    );
}

#[test]
fn while_starting_the_process_is_alive_and_not_ready() {
    for path in ["/healthz", "/livez", "/livez/"] {
        let (code, response, text) = call("GET", path);
        assert_eq!(
            (code, text.as_str()),
            (StatusCode::OK, "healthz check passed")
        );
        assert!(
            response.headers()[CONTENT_TYPE]
                .to_str()
                .unwrap()
                .starts_with("text/plain")
        );
    }
    let (code, _, text) = call("GET", "/readyz");
    assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(text, "some shards are not ready");
    for (method, path) in [
        ("GET", "/collections"),
        ("GET", "/collections/a/"),
        ("GET", "/collections/a/exists"),
        ("DELETE", "/collections/a"),
        ("PUT", "/collections/a/points?wait=true"),
        ("POST", "//collections//a/points/query"),
        ("GET", "/collections/a/optimizations"),
    ] {
        let (code, response, text) = call(method, path);
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE, "{method} {path}");
        assert!(error_of(&text).starts_with("Service unavailable: the server is starting"));
        assert_eq!(response.headers()["retry-after"], "1");
    }
}

#[test]
fn unknown_paths_are_404_and_qdrants_unserved_ones_400_in_the_envelope() {
    for (method, path) in [
        ("GET", "/nope"),
        ("POST", "/collections"),
        ("GET", "/a/%FF"),
    ] {
        let (code, _, text) = call(method, path);
        assert_eq!(code, StatusCode::NOT_FOUND, "{method} {path}");
        assert!(
            error_of(&text).starts_with("Not found: there is no endpoint"),
            "{text}"
        );
    }
    for (method, path) in [
        ("GET", "/telemetry"),
        ("GET", "/metrics?anonymize=true"),
        ("GET", "/metrics?per_collection=true"),
        ("POST", "/collections/a/facet"),
        ("POST", "/collections/a/points/query/groups"),
        ("POST", "/collections/a/points/search/matrix/pairs"),
        ("PUT", "/collections/a/vectors/b"),
    ] {
        let (code, _, text) = call(method, path);
        assert_eq!(code, StatusCode::BAD_REQUEST, "{method} {path}");
        assert!(error_of(&text).contains("is not served yet"), "{text}");
    }
}

#[test]
fn metrics_are_told_while_the_collections_are_being_loaded() {
    let (code, response, text) = call("GET", "/metrics");
    assert_eq!(code, StatusCode::OK);
    let kind = response.headers()[CONTENT_TYPE].to_str().unwrap();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines.contains(&r#"app_info{name="qdrant - vector search engine",version="1.19.0"} 1"#)
    );
    assert!(lines.contains(&"app_status_recovery_mode 0") && lines.contains(&"flatwater_ready 0"));
    assert!(!text.contains("collections_total"), "{text}");
}

#[test]
fn answers_are_counted_under_the_path_as_it_is_routed() {
    let app = App::starting(Options::built_in(), 2);
    let asked = |method: &str, target: &str| {
        let request = Request::builder().method(method).uri(target);
        let request = request.body(Body::empty()).unwrap();
        block_on(service(Arc::clone(&app)).oneshot(request)).unwrap();
    };
    for name in ["a", "b", "c"] {
        asked("POST", &format!("/collections/{name}/points/query"));
    }
    asked("GET", "/collections/a/points/7");
    for target in ["/nope", "/healthz", "/metrics"] {
        asked("GET", target);
    }
    let text = app.metrics().unwrap();
    let counted: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("rest_responses"))
        .collect();
    let expected = [
        r#"rest_responses_total{method="POST",endpoint="/collections/{collection_name}/points/query",status="503"} 3"#,
        r#"rest_responses_total{method="GET",endpoint="/collections/{collection_name}/points/{id}",status="503"} 1"#,
    ];
    assert_eq!(counted, expected, "only status 200 has its times told");
}

#[test]
fn bad_query_parameters_are_named() {
    for (query, code, part) in [
        (
            "wait=yes",
            400,
            "Deserialize error in query parameters: wait: invalid value `yes`",
        ),
        (
            "timeout=0",
            422,
            "query parameters: [timeout: value 0 invalid, must be 1 or larger]",
        ),
        ("timeout=-1", 400, "timeout: invalid value `-1`"),
        ("ordering=loose", 400, "ordering: invalid value `loose`"),
    ] {
        let (status, _, text) = call("PUT", &format!("/collections/a/points?{query}"));
        assert_eq!(status.as_u16(), code, "{text}");
        assert!(error_of(&text).contains(part), "{text}");
    }
    let (status, _, text) = call("POST", "/collections/a/points/query?consistency=some");
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        error_of(&text).contains("consistency: invalid value `some`"),
        "{text}"
    );
}

#[test]
fn a_path_that_is_not_utf8_is_a_400() {
    let (code, _, text) = call("GET", "/collections/%FF%FE");
    assert_eq!(code, StatusCode::BAD_REQUEST);
    assert!(error_of(&text).contains("not UTF-8"), "{text}");
}

#[test]
fn a_point_id_in_a_path_must_be_one() {
    let (code, _, text) = call("GET", "/collections/a/points/abc");
    assert_eq!(code, StatusCode::BAD_REQUEST);
    assert!(
        error_of(&text).contains("value abc is not a valid point ID"),
        "{text}"
    );
}

#[test]
fn parts_of_the_path_arrive_decoded() {
    let router = Router::new().route(
        "/collections/{c}/points/{id}",
        get(|input: Input| async move { format!("{}|{}", input.part(0), input.part(1)) }),
    );
    let text = block_on(async {
        let request = Request::get("/collections/%2e%2e%2Fx/points/a%20b").body(Body::empty());
        let response = router.oneshot(request.unwrap()).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    });
    assert_eq!(&text[..], b"../x|a b");
}

#[test]
fn a_body_over_the_limit_is_a_400_that_names_it_and_one_at_the_limit_is_read() {
    let take = |input: Input| async {
        match input.body(1).await {
            Ok(body) => body.len().to_string(),
            Err(error) => error.to_string(),
        }
    };
    let read = |bytes: usize, announced: bool| {
        block_on(async move {
            let mut request = Request::post("/");
            if announced {
                request = request.header(CONTENT_LENGTH, bytes);
            }
            let request = request.body(Body::from(vec![b' '; bytes])).unwrap();
            let router = Router::new().route("/", axum::routing::post(take));
            let response = router.oneshot(request).await.unwrap();
            let text = response.into_body().collect().await.unwrap().to_bytes();
            String::from_utf8(text.to_vec()).unwrap()
        })
    };
    let limit = 1_048_576;
    for announced in [true, false] {
        assert_eq!(read(limit, announced), limit.to_string());
        let too_large = ApiError::BodyTooLarge {
            limit_mb: 1,
            option: "service.max_request_size_mb",
        }
        .to_string();
        assert!(too_large.contains("limit: 1 MB"), "{too_large}");
        assert_eq!(read(limit + 1, announced), too_large);
    }
}

#[test]
fn a_panic_in_a_handler_is_a_500_in_the_envelope() {
    async fn fails() -> Response {
        panic!("on purpose")
    }
    let router: Router = Router::new()
        .route("/", get(fails))
        .layer(CatchPanicLayer::custom(reply::panicked));
    block_on(async {
        let request = Request::get("/").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = error_of(std::str::from_utf8(&bytes).unwrap());
        assert!(text.starts_with("Service internal error: "), "{text}");
    });
}

#[test]
fn browsers_of_any_origin_may_ask_unless_cors_is_off() {
    for enabled in [true, false] {
        let mut options = Options::built_in();
        options.service.enable_cors = enabled;
        let response = block_on(async {
            let request = Request::get("/livez")
                .header("origin", "http://x")
                .body(Body::empty());
            service(App::starting(options, 1))
                .oneshot(request.unwrap())
                .await
                .unwrap()
        });
        assert_eq!(
            response
                .headers()
                .contains_key("access-control-allow-origin"),
            enabled
        );
    }
}
