//! Ctrl-C: the run ends early and keeps what it measured.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the run is to end.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Listens from now on. The first Ctrl-C asks the run to end, the second one ends the program.
pub(crate) fn listen() -> std::io::Result<()> {
    static LISTENS: AtomicBool = AtomicBool::new(false);
    if LISTENS.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_io().build()?;
    let listener = std::thread::Builder::new().name(String::from("interrupt"));
    listener.spawn(move || {
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                ASKED.store(true, Ordering::Relaxed);
                say("ending; what is measured is kept (Ctrl-C again: end at once)");
            }
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::abort();
            }
        });
    })?;
    Ok(())
}

#[allow(clippy::print_stderr, reason = "who pressed Ctrl-C waits for a word")]
fn say(text: &str) {
    eprintln!("\n{text}");
}
