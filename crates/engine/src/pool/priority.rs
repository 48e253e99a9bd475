//! Lowest priority for background threads.

/// Puts the calling thread, and every thread it starts from now on, at the lowest priority:
/// `SCHED_IDLE`, so that the kernel gives it a core only when nobody else wants one, or nice 19
/// where that is refused. An unprivileged thread cannot leave `SCHED_IDLE` again.
///
/// Returns false if neither was granted; the thread then runs at normal priority.
#[cfg(target_os = "linux")]
#[must_use]
pub fn lower_this_thread() -> bool {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: pid 0 names the calling thread and `param` is a valid, initialised structure.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param) } == 0 {
        return true;
    }
    // SAFETY: plain system call on the calling thread's own id; no memory is handed over.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) == 0 }
}

/// Nothing to do where the scheduler has no such class.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn lower_this_thread() -> bool {
    false
}
