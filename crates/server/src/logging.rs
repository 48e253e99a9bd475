//! Log lines: on stdout, one event a line, time in ISO 8601 first; colours on a terminal only.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Reads `log_level`: a level, or a list like `info,flatwater_engine=debug`.
pub(crate) fn parse_level(text: &str) -> Option<Targets> {
    // The parser takes a lone word for a target whose every event is wanted; a misspelt level would
    // then silence all others.
    let ends_in_level = |part: &str| {
        part.rsplit('=')
            .next()
            .is_some_and(|level| level.trim().parse::<LevelFilter>().is_ok())
    };
    text.split(',')
        .all(ends_in_level)
        .then(|| text.parse().ok())
        .flatten()
}

/// Starts logging. Panics are logged like errors from then on.
pub(crate) fn start(level: Targets) {
    let lines = tracing_subscriber::fmt::layer().with_ansi(std::io::stdout().is_terminal());
    // A second start in one process (tests) keeps the first one.
    let _ = tracing_subscriber::registry()
        .with(level)
        .with(lines)
        .try_init();
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        tracing::error!(
            "Panic in thread `{}`: {panic}",
            thread.name().unwrap_or("unnamed")
        );
    }));
}
