//! What a run says while it goes on: one line, written over itself on a terminal.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Shortest time from one line to the next.
const EVERY: Duration = Duration::from_millis(500);
/// The same where lines stay.
const EVERY_IN_A_LOG: Duration = Duration::from_secs(10);

/// Progress of a run of several trials.
#[derive(Debug)]
pub(crate) struct Progress {
    begun: Instant,
    trials: usize,
    is_silent: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Ended trials, and what this one is.
    ended: usize,
    name: String,
    said: Option<Instant>,
}

impl Progress {
    /// Of `trials` trials that begin now.
    pub(crate) fn new(trials: usize, is_silent: bool) -> Self {
        Self {
            begun: Instant::now(),
            trials,
            is_silent,
            state: Mutex::new(State {
                ended: 0,
                name: String::new(),
                said: None,
            }),
        }
    }

    /// A trial begins.
    pub(crate) fn trial(&self, at: usize, name: &str) {
        if let Ok(mut state) = self.state.lock() {
            (state.ended, state.said) = (at, None);
            name.clone_into(&mut state.name);
        }
    }

    /// What it does now, and how much of it is done (0 to 1) if that is known.
    pub(crate) fn step(&self, step: &str, share: Option<f64>) {
        if self.is_silent {
            return;
        }
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        let stays = !std::io::stderr().is_terminal();
        let every = if stays { EVERY_IN_A_LOG } else { EVERY };
        if state.said.is_some_and(|said| said.elapsed() < every) {
            return;
        }
        state.said = Some(Instant::now());
        let percent = share.map_or(String::new(), |share| format!(" {:.0} %", share * 100.0));
        let left = left(self.begun.elapsed(), state.ended, self.trials);
        let left = left.map_or(String::new(), |left| {
            format!(", about {} left", minutes(left))
        });
        let (number, trials) = (state.ended + 1, self.trials);
        let line = format!("[{number}/{trials}] {}: {step}{percent}{left}", state.name);
        let end = if stays { "\n" } else { "\x1b[K\r" };
        // A line that cannot be written is no reason to stop a measurement.
        drop(write!(std::io::stderr(), "{line}{end}"));
    }
}

/// Time left by the trials that have ended; nothing is known during the first.
fn left(elapsed: Duration, ended: usize, trials: usize) -> Option<Duration> {
    let each = elapsed.checked_div(u32::try_from(ended).ok()?)?;
    Some(each * u32::try_from(trials.saturating_sub(ended)).ok()?)
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_goes_by_the_trials_that_have_ended() {
        let at = |seconds| Duration::from_secs(seconds);
        assert_eq!(left(at(50), 0, 4), None);
        assert_eq!(left(at(100), 1, 4), Some(at(300)));
        assert_eq!(left(at(100), 4, 4), Some(at(0)));
        assert_eq!(
            (minutes(at(99)), minutes(at(300))),
            ("99 s".into(), "5 min".into())
        );
    }
}
