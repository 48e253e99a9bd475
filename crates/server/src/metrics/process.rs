//! What the kernel knows of this process. What it does not tell is left out.

use std::fmt;

use super::families::{Families, NO_LABELS};

/// Writes what there is.
pub(super) fn encode(out: &mut Families<'_>) -> fmt::Result {
    let status = read("status");
    let kb = number_after(&status, "VmRSS:");
    let resident = kb.map(|kb| (NO_LABELS, kb.saturating_mul(1024)));
    out.gauges(
        "memory_resident_bytes",
        "Memory of the process that is in use.",
        resident,
    )?;
    let threads = number_after(&status, "Threads:").map(|threads| (NO_LABELS, threads));
    out.gauges("process_threads", "Threads.", threads)?;
    let mmaps = read("maps").lines().count() as u64;
    let mmaps = (mmaps > 0).then_some((NO_LABELS, mmaps));
    out.gauges("process_open_mmaps", "Mappings.", mmaps)?;
    let fds = open_files().map(|count| (NO_LABELS, count));
    out.gauges("process_open_fds", "Open files.", fds)?;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map(|limit| (NO_LABELS, limit));
    out.gauges("process_max_fds", "Files that may be open.", limit)?;
    let (minor, major) = page_faults(&read("stat"));
    let minor = minor.map(|count| (NO_LABELS, count));
    out.counters(
        "process_minor_page_faults",
        "Page faults served from memory.",
        minor,
    )?;
    let major = major.map(|count| (NO_LABELS, count));
    out.counters(
        "process_major_page_faults",
        "Page faults served from the disk.",
        major,
    )
}

fn read(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default()
}

/// The first number of the line that begins with `key`.
fn number_after(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

fn open_files() -> Option<u64> {
    let listed = std::fs::read_dir("/proc/self/fd").ok()?;
    // Without the one that lists them.
    Some((listed.count() as u64).saturating_sub(1))
}

/// Minor and major page faults: the 10th and 12th field, counted behind the name of the program, which may
/// hold spaces.
fn page_faults(stat: &str) -> (Option<u64>, Option<u64>) {
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let field = |number: usize| behind.split_whitespace().nth(number - 3)?.parse().ok();
    (field(10), field(12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_where_the_kernel_writes_them() {
        assert_eq!(
            number_after("Name:\tx\nVmRSS:\t  123 kB\n", "VmRSS:"),
            Some(123)
        );
        assert_eq!(number_after("", "VmRSS:"), None);
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 500 0 6 0 1 2";
        assert_eq!(page_faults(stat), (Some(500), Some(6)));
        assert_eq!(page_faults(""), (None, None));
    }

    #[test]
    fn this_process_has_memory_threads_and_files() {
        let status = read("status");
        assert!(number_after(&status, "VmRSS:").unwrap() > 100);
        assert!(number_after(&status, "Threads:").unwrap() > 0);
        assert!(open_files().unwrap() > 2);
        assert!(page_faults(&read("stat")).0.unwrap() > 10);
    }
}
