//! Paths are taken with trailing and doubled slashes, as Qdrant takes them.

use axum::extract::Request;
use axum::http::Uri;

/// The request with one slash where several stood, and none at the end.
pub(super) fn normalise(mut request: Request) -> Request {
    if let Some(uri) = normalised(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

/// The normal form of a URI that is not in it.
fn normalised(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    if path == "/" || !(path.ends_with('/') || path.contains("//")) {
        return None;
    }
    let mut target = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !part.is_empty()) {
        target.push('/');
        target.push_str(part);
    }
    if target.is_empty() {
        target.push('/');
    }
    if let Some(query) = uri.query() {
        target.push('?');
        target.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_are_normalised_and_the_query_is_kept() {
        let of = |text: &str| normalised(&text.parse().unwrap()).map(|uri| uri.to_string());
        assert_eq!(of("/collections/a"), None);
        assert_eq!(of("/"), None);
        assert_eq!(of("/collections/a/").as_deref(), Some("/collections/a"));
        assert_eq!(
            of("//collections///a//?x=//1").as_deref(),
            Some("/collections/a?x=//1")
        );
        assert_eq!(of("//").as_deref(), Some("/"));
        assert_eq!(of("/collections/%2F/").as_deref(), Some("/collections/%2F"));
    }
}
