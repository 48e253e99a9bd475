//! A server by REST.
//!
//! Each client has one connection and a runtime of its own in its own thread: a call goes to the
//! socket and back without a hand-over to another thread.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::http::response::Parts;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use super::{Batch, Failure, Found, Place, Search, Session, Subject, Target, Verb};

/// How long a managing call may take: making an index waits for it.
const MANAGE_TIMEOUT: Duration = Duration::from_secs(600);

/// A server that speaks Qdrant's REST API.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) place: Place,
    pub(crate) api_key: Option<String>,
    /// Of a timed call.
    pub(crate) timeout: Duration,
}

impl Target for Rest {
    fn kind(&self) -> &'static str {
        "rest"
    }

    fn place(&self) -> String {
        format!("http://{}", self.place.authority())
    }

    fn version(&self) -> Result<String, Failure> {
        let mut connection = Connection::new(self, MANAGE_TIMEOUT)?;
        let bytes = connection.call(Method::GET, "/", Vec::new())?;
        let told: Value = read(&bytes)?;
        let word = |name: &str| told[name].as_str().unwrap_or("?").to_owned();
        let ours = connection.flatwater.as_deref();
        let build = ours.map_or(String::new(), |version| format!(", flatwater {version}"));
        Ok(format!("{} {}{build}", word("title"), word("version")))
    }

    fn process(&self) -> Option<u32> {
        self.place.process()
    }

    fn manage(&self, verb: Verb, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let mut connection = Connection::new(self, MANAGE_TIMEOUT)?;
        let method = match verb {
            Verb::Get => Method::GET,
            Verb::Put => Method::PUT,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let body = body.map_or(Vec::new(), |body| body.to_string().into_bytes());
        let mut answer: Value = read(&connection.call(method, path, body)?)?;
        Ok(answer["result"].take())
    }

    fn session(&self, subject: &Subject) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(RestSession {
            connection: Connection::new(self, self.timeout)?,
            subject: subject.clone(),
        }))
    }
}

struct RestSession {
    connection: Connection,
    subject: Subject,
}

impl RestSession {
    fn points(&self, rest: &str) -> String {
        format!("/collections/{}/points{rest}", self.subject.collection)
    }
}

impl Session for RestSession {
    fn search(&mut self, search: &Search<'_>) -> Result<Found, Failure> {
        let begin = Instant::now();
        let body = search_body(search, &self.subject.vector);
        let path = self.points("/query");
        let called = Instant::now();
        let bytes = self.connection.call(Method::POST, &path, body)?;
        let answered = Instant::now();
        let answer: Answer = read(&bytes)?;
        Ok(Found {
            ids: answer.result.points.iter().map(|point| point.id).collect(),
            server: Duration::try_from_secs_f64(answer.time).ok(),
            own: (called - begin) + answered.elapsed(),
        })
    }

    fn upsert(&mut self, batch: &Batch, wait: bool) -> Result<(), Failure> {
        let points = Points {
            batch,
            name: &self.subject.vector,
        };
        let body = serde_json::to_vec(&points).map_err(unreadable)?;
        let path = self.points(&format!("?wait={wait}"));
        self.connection.call(Method::PUT, &path, body)?;
        Ok(())
    }

    fn delete(&mut self, ids: &[u64], wait: bool) -> Result<(), Failure> {
        let body = json!({ "points": ids }).to_string().into_bytes();
        let path = self.points(&format!("/delete?wait={wait}"));
        self.connection.call(Method::POST, &path, body)?;
        Ok(())
    }
}

#[derive(Deserialize)]
struct Answer {
    result: FoundPoints,
    #[serde(default)]
    time: f64,
}

#[derive(Deserialize)]
struct FoundPoints {
    points: Vec<FoundPoint>,
}

#[derive(Deserialize)]
struct FoundPoint {
    id: u64,
}

fn search_body(search: &Search<'_>, name: &str) -> Vec<u8> {
    let mut body = json!({
        "query": search.vector,
        "limit": search.limit,
        "with_payload": false,
    });
    if !name.is_empty() {
        body["using"] = json!(name);
    }
    if let Some(ef) = search.ef {
        body["params"] = json!({ "hnsw_ef": ef });
    }
    if let Some(keyword) = search.keyword {
        let wanted = json!({ "key": keyword.field, "match": { "value": keyword.value } });
        body["filter"] = json!({ "must": [wanted] });
    }
    body.to_string().into_bytes()
}

/// The body of an upsert, written without a tree of values in between.
struct Points<'a> {
    batch: &'a Batch,
    name: &'a str,
}

struct Point<'a> {
    points: &'a Points<'a>,
    index: usize,
}

struct Named<'a>(&'a str, &'a [f32]);

impl Serialize for Points<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(1))?;
        map.serialize_entry("points", &PointList(self))?;
        map.end()
    }
}

struct PointList<'a>(&'a Points<'a>);

impl Serialize for PointList<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let count = self.0.batch.ids.len();
        let mut list = out.serialize_seq(Some(count))?;
        for index in 0..count {
            list.serialize_element(&Point {
                points: self.0,
                index,
            })?;
        }
        list.end()
    }
}

impl Serialize for Point<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let Points { batch, name } = *self.points;
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("id", &batch.ids[self.index])?;
        let vector = batch.vector(self.index);
        if name.is_empty() {
            map.serialize_entry("vector", vector)?;
        } else {
            map.serialize_entry("vector", &Named(name, vector))?;
        }
        if let Some(keyword) = batch.keywords.get(self.index) {
            map.serialize_entry("payload", &json!({ &keyword.field: keyword.value }))?;
        }
        map.end()
    }
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(1))?;
        map.serialize_entry(self.0, self.1)?;
        map.end()
    }
}

/// One connection, made anew after a fault.
struct Connection {
    runtime: Runtime,
    authority: String,
    api_key: Option<String>,
    timeout: Duration,
    sender: Option<SendRequest<Full<Bytes>>>,
    /// Version of Flatwater that the last answer told, if it is one.
    flatwater: Option<String>,
}

/// Header in which Flatwater tells its own version; the body says which Qdrant it speaks like.
const VERSION_HEADER: &str = "x-flatwater-version";

impl Connection {
    fn new(rest: &Rest, timeout: Duration) -> Result<Self, Failure> {
        Ok(Self {
            runtime: own_runtime()?,
            authority: rest.place.authority(),
            api_key: rest.api_key.clone(),
            timeout,
            sender: None,
            flatwater: None,
        })
    }

    /// Sends a request and returns the body of the answer; an answer that says no is a fault.
    ///
    /// A connection that the server had closed in the meantime is made anew, once: hyper tells when
    /// nothing of a request was sent.
    fn call(&mut self, method: Method, path: &str, body: Vec<u8>) -> Result<Bytes, Failure> {
        let mut builder = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.authority)
            .header("content-type", "application/json");
        if let Some(key) = &self.api_key {
            builder = builder.header("api-key", key);
        }
        let request = builder
            .body(Full::new(Bytes::from(body)))
            .map_err(unreadable)?;
        let (authority, sender, timeout) = (&self.authority, &mut self.sender, self.timeout);
        let answer = self.runtime.block_on(async {
            tokio::time::timeout(timeout, exchange(authority, sender, request)).await
        });
        let answer = answer.unwrap_or(Err(Failure::Timeout(timeout)));
        if answer.is_err() {
            // What is still to come on it belongs to the request that was given up.
            self.sender = None;
        }
        let (head, body) = answer?;
        let status = head.status;
        let version = head.headers.get(VERSION_HEADER);
        self.flatwater = version.and_then(|text| Some(text.to_str().ok()?.to_owned()));
        if status.is_success() {
            return Ok(body);
        }
        let told: Value = serde_json::from_slice(&body).unwrap_or_default();
        let error = told["status"]["error"].as_str();
        Err(Failure::Refused {
            status: status.as_u16().to_string(),
            message: error.map_or_else(|| short(&String::from_utf8_lossy(&body)), str::to_owned),
        })
    }
}

/// Sends one request over the connection that `sender` holds, or over a new one.
async fn exchange(
    authority: &str,
    sender: &mut Option<SendRequest<Full<Bytes>>>,
    request: Request<Full<Bytes>>,
) -> Result<(Parts, Bytes), Failure> {
    let is_old = sender.is_some();
    let mut open = match sender.take() {
        Some(open) if !open.is_closed() => open,
        _ => connect(authority).await?,
    };
    if open.ready().await.is_err() {
        open = connect(authority).await?;
    }
    let again = request.clone();
    let answer = match open.send_request(request).await {
        Err(error) if is_old && error.is_canceled() => {
            open = connect(authority).await?;
            open.send_request(again).await
        }
        other => other,
    };
    let answer = answer.map_err(broken)?;
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(broken)?;
    *sender = Some(open);
    Ok((head, body.to_bytes()))
}

async fn connect(authority: &str) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(authority).await.map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends with the sender; what went wrong is told to the request in flight.
    tokio::spawn(async { drop(connection.await) });
    Ok(sender)
}

/// A runtime that runs in the thread that waits on it.
pub(super) fn own_runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_io().enable_time().build().map_err(broken)
}

fn broken(error: impl std::error::Error) -> Failure {
    let cause = error.source().map(|cause| format!(": {cause}"));
    Failure::Connection(format!("{error}{}", cause.unwrap_or_default()))
}

fn unreadable(error: impl std::error::Error) -> Failure {
    Failure::Unreadable(error.to_string())
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(unreadable)
}

/// The beginning of a text that may be of any length.
fn short(text: &str) -> String {
    text.chars().take(200).collect()
}
