//! Wall time and processor time of a piece of work.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Seconds by the clock on the wall, and of all threads of this process on a processor. On a quiet
/// machine one thread's two are equal; where others compute as well the second is the steadier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seconds {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

impl Seconds {
    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (Self, T) {
        let (wall, cpu) = (Instant::now(), processor_seconds());
        let result = work();
        let seconds = Self {
            wall: wall.elapsed().as_secs_f64(),
            cpu: processor_seconds() - cpu,
        };
        (seconds, result)
    }

    /// The fastest of several passes over the same work, each clock for itself: what disturbs a
    /// pass only ever makes it slower.
    pub(crate) fn fastest(passes: &[Self]) -> Self {
        let least = |of: fn(&Self) -> f64| passes.iter().map(of).fold(f64::INFINITY, f64::min);
        Self {
            wall: least(|pass| pass.wall),
            cpu: least(|pass| pass.cpu),
        }
    }
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
