//! The order of start and stop.
//!
//! Start: options; log; limit of open files; check of the storage folder; ports (from here on
//! `/livez` answers, `/readyz` says 503); engine, which recovers its collections; ready.
//!
//! Stop, on SIGTERM or SIGINT: no new connections and no new work; what is in flight gets a few
//! seconds; the engine takes its checkpoint and closes; exit code 0. A signal while the engine is
//! still recovering ends the process at once: recovery can be cut off at any moment.

use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::ServiceExt;
use axum::extract::Request;
use axum::serve::ListenerExt;
use flatwater_engine::engine::Engine;
use flatwater_engine::error::EngineError;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::app::{App, Shared};
use crate::args::{Arguments, version};
use crate::options::{self, Loaded, Options};
use crate::{foreign, grpc, http, limits, logging};

/// What requests in flight get after the signal. Searches take milliseconds; a container gets 30 s
/// in all before it is killed.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(4);

/// What the engine gets to close, inside those 30 s.
const ENGINE_CLOSE_MAX: Duration = Duration::from_secs(20);

/// Why the server did not start, or ended badly.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(
        "{file} is a file of Qdrant's: storage_path {storage} cannot be opened by Flatwater; \
             nothing was changed, choose another folder"
    )]
    Foreign { storage: String, file: String },
    #[error("cannot listen on {host}:{port} ({option}): {source}")]
    Bind {
        host: String,
        port: u16,
        option: &'static str,
        source: std::io::Error,
    },
    #[error("gRPC ended: {0}")]
    Grpc(#[from] tonic::transport::Error),
    #[error("cannot open the storage: {0}")]
    Open(EngineError),
    #[error("closing the storage failed: {0}")]
    Close(EngineError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("a thread of the start or the stop met a bug; the log has its place")]
    Panicked,
    #[error("the storage did not close within {} s", ENGINE_CLOSE_MAX.as_secs())]
    CloseTimeout,
}

/// Runs the server until it is told to stop.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let loaded = match options::load(arguments.config_path.as_deref()) {
        Ok(loaded) => loaded,
        Err(fault) => {
            logging::start(logging::parse_level("info").unwrap_or_default());
            tracing::error!("{fault}");
            return ExitCode::FAILURE;
        }
    };
    logging::start(logging::parse_level(&loaded.options.log_level).unwrap_or_default());
    match serve(loaded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            tracing::error!("{fault}");
            ExitCode::FAILURE
        }
    }
}

fn serve(Loaded { options, warnings }: Loaded) -> Result<(), RunError> {
    say_hello(&options, &warnings);
    limits::raise_open_files();
    if let Some(file) = foreign::qdrant_file(&options.storage_path) {
        let storage = options.storage_path.display().to_string();
        return Err(RunError::Foreign {
            storage,
            file: file.display().to_string(),
        });
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("flatwater-net")
        .enable_all()
        .build()?;
    let result = runtime.block_on(live(options));
    // Threads that still block (an engine cut off in its recovery) end with the process.
    runtime.shutdown_background();
    if result.is_ok() {
        tracing::info!("Stopped");
    }
    result
}

fn say_hello(options: &Options, warnings: &[String]) {
    tracing::info!("{}", version());
    let build = option_env!("FLATWATER_COMMIT").unwrap_or("unknown");
    tracing::info!("Version: {}, build: {build}", flatwater_api::QDRANT_VERSION);
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let is_public = matches!(options.service.host.as_str(), "0.0.0.0" | "::" | "[::]");
    if is_public && !options.service.is_guarded() {
        tracing::warn!(
            "Listening on all interfaces ({}) without an API key: anyone who reaches the port can \
             read and change everything. Set service.api_key, or service.host to 127.0.0.1",
            options.service.host
        );
    }
}

/// From the port to the end.
async fn live(options: Options) -> Result<(), RunError> {
    let mut stop = stop_signal()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let engine_config = options.engine(cores);
    let Ports {
        http,
        grpc,
        metrics,
    } = bind(&options).await?;
    let app = App::starting(options, cores);
    if let Some(grpc) = &grpc {
        app.grpc_listens(grpc.local_addr()?.port());
    }
    if let Some(metrics) = metrics {
        // It ends with the process: who watches may see it stop.
        tokio::spawn(serve_metrics(metrics, Arc::clone(&app)));
    }
    let serving = tokio::spawn(serve_all(http, grpc, Arc::clone(&app), stop.clone()));

    let opening = tokio::task::spawn_blocking(move || Engine::open(engine_config));
    let engine = tokio::select! {
        opened = open(opening, &app) => Some(opened?),
        () = stopped(&mut stop) => None,
    };
    if let Some(engine) = &engine {
        say_ready(engine);
        stopped(&mut stop).await;
    }
    tracing::info!("Stopping");
    app.stop();
    match tokio::time::timeout(IN_FLIGHT_MAX, serving).await {
        Ok(Ok(result)) => result?,
        Ok(Err(_)) => return Err(RunError::Panicked),
        Err(_) => tracing::warn!("Some requests were cut off after {IN_FLIGHT_MAX:?}"),
    }
    match engine {
        Some(engine) => close(engine).await,
        None => Ok(()),
    }
}

/// Waits for the engine and shows it to the handlers.
async fn open(
    opening: impl Future<Output = Result<Result<Arc<Engine>, EngineError>, tokio::task::JoinError>>,
    app: &Shared,
) -> Result<Arc<Engine>, RunError> {
    let started = Instant::now();
    let engine = opening
        .await
        .map_err(|_| RunError::Panicked)?
        .map_err(RunError::Open)?;
    app.opened(Arc::clone(&engine));
    tracing::debug!("Storage opened in {:.3} s", started.elapsed().as_secs_f64());
    Ok(engine)
}

fn say_ready(engine: &Engine) {
    let count = engine.collections().len();
    tracing::info!("Ready, collections: {count}");
}

async fn close(engine: Arc<Engine>) -> Result<(), RunError> {
    let closing = tokio::task::spawn_blocking(move || engine.shutdown());
    match tokio::time::timeout(ENGINE_CLOSE_MAX, closing).await {
        Ok(Ok(result)) => result.map_err(RunError::Close),
        Ok(Err(_)) => Err(RunError::Panicked),
        Err(_) => Err(RunError::CloseTimeout),
    }
}

/// The ports, open.
struct Ports {
    http: TcpListener,
    grpc: Option<TcpListener>,
    metrics: Option<TcpListener>,
}

/// Opens the ports of REST and, unless they are off, of gRPC and of metrics alone.
async fn bind(options: &Options) -> Result<Ports, RunError> {
    let service = &options.service;
    let http = listen(&service.host, service.http_port, "service.http_port").await?;
    let grpc = match service.grpc_port {
        Some(port) => Some(listen(&service.host, port, "service.grpc_port").await?),
        None => None,
    };
    let metrics = match service.metrics_port {
        Some(port) => Some(listen(&service.host, port, "service.metrics_port").await?),
        None => None,
    };
    // The lines are those that tools made for Qdrant wait for.
    tracing::info!("Qdrant HTTP listening on {}", http.local_addr()?.port());
    match &grpc {
        Some(grpc) => tracing::info!("Qdrant gRPC listening on {}", grpc.local_addr()?.port()),
        None => tracing::info!("gRPC endpoint disabled"),
    }
    if let Some(metrics) = &metrics {
        tracing::info!("Metrics listening on {}", metrics.local_addr()?.port());
    }
    tracing::info!("TLS disabled for REST API");
    tracing::info!("TLS disabled for gRPC API");
    Ok(Ports {
        http,
        grpc,
        metrics,
    })
}

async fn listen(host: &str, port: u16, option: &'static str) -> Result<TcpListener, RunError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let listening = TcpListener::bind((bare, port)).await;
    listening.map_err(|source| RunError::Bind {
        host: host.to_owned(),
        port,
        option,
        source,
    })
}

/// Serves both interfaces until the signal has come and what is in flight has ended.
async fn serve_all(
    http: TcpListener,
    grpc: Option<TcpListener>,
    app: Shared,
    mut stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let rest = serve_http(http, Arc::clone(&app), stop.clone());
    match grpc {
        None => rest.await?,
        Some(grpc) => {
            let grpc = grpc::serve(grpc, app, async move { stopped(&mut stop).await });
            let (rest, grpc) = tokio::join!(rest, grpc);
            rest?;
            grpc?;
        }
    }
    Ok(())
}

async fn serve_http(
    listener: TcpListener,
    app: Shared,
    mut stop: watch::Receiver<bool>,
) -> std::io::Result<()> {
    // Answers are small and written at once: waiting for more would only delay them.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("TCP_NODELAY: {error}");
        }
    });
    let service = http::service(app);
    let make = ServiceExt::<Request>::into_make_service_with_connect_info::<SocketAddr>(service);
    axum::serve(listener, make)
        .with_graceful_shutdown(async move { stopped(&mut stop).await })
        .await
}

/// Serves `/metrics` alone, without a key, until the process ends.
async fn serve_metrics(listener: TcpListener, app: Shared) {
    let service = http::metrics_service(app).into_make_service();
    if let Err(error) = axum::serve(listener, service).await {
        tracing::error!("the port of metrics ended: {error}");
    }
}

/// A channel that turns true on SIGTERM or SIGINT.
fn stop_signal() -> std::io::Result<watch::Receiver<bool>> {
    let (sender, receiver) = watch::channel(false);
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = term.recv() => "SIGTERM",
            _ = int.recv() => "SIGINT",
        };
        tracing::info!("Received {name}");
        sender.send_replace(true);
        // The sender lives as long as someone may ask.
        sender.closed().await;
    });
    Ok(receiver)
}

/// Returns once the signal has come.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A lost sender counts as the signal: the process is ending then.
    let _ = stop.wait_for(|is_stopping| *is_stopping).await;
}
