//! A bell: wakes one thread that waits for "something changed", however often it is rung.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

/// Rings collapse: a thread that wakes sees everything that changed before the last of them.
#[derive(Clone, Debug)]
pub struct Bell {
    ring: Sender<()>,
    rung: Receiver<()>,
}

impl Default for Bell {
    fn default() -> Self {
        let (ring, rung) = bounded(1);
        Self { ring, rung }
    }
}

impl Bell {
    /// Wakes the waiter, now or when it next waits. Never blocks.
    pub fn ring(&self) {
        // A full channel means that a ring is waiting already.
        let _already_rung = self.ring.try_send(());
    }

    /// Waits for a ring, at most `timeout`. Returns whether it rang.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.rung.recv_timeout(timeout).is_ok()
    }
}
