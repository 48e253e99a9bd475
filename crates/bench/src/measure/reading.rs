//! What a process and the machine have used so far, from `/proc`; zeros where it does not tell.

use std::fs;

use serde_json::{Value, json};

/// Ticks of the kernel's clock in a second, the same on every Linux that programs are built for.
const TICKS_PER_S: f64 = 100.0;
/// Bytes of a page in `/proc/PID/stat`, likewise on x86-64 and on most others.
const PAGE_BYTES: u64 = 4096;

/// Counters of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessReading {
    pub(crate) cpu_s: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) written_bytes: u64,
}

/// Counters of the machine: seconds of all cores together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MachineReading {
    pub(crate) busy_s: f64,
    pub(crate) steal_s: f64,
    pub(crate) total_s: f64,
    pub(crate) load_1m: f64,
}

impl ProcessReading {
    /// Of `process` now.
    pub(crate) fn now(process: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let io = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
        Self::read(&stat, &io)
    }

    fn read(stat: &str, io: &str) -> Self {
        // The name stands in brackets and may hold anything; the numbers begin behind it.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<u64> = fields
            .split_whitespace()
            .map(|word| word.parse().unwrap_or(0))
            .collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or(0);
        let written = io
            .lines()
            .find_map(|line| line.strip_prefix("write_bytes: "));
        Self {
            minor_faults: field(7),
            major_faults: field(9),
            cpu_s: (field(11) + field(12)) as f64 / TICKS_PER_S,
            resident_bytes: field(21) * PAGE_BYTES,
            written_bytes: written.and_then(|n| n.trim().parse().ok()).unwrap_or(0),
        }
    }

    /// What was used since `before`; of memory, what it is now.
    pub(crate) fn since(self, before: Self) -> Value {
        json!({
            "cpu_s": self.cpu_s - before.cpu_s,
            "resident_mb": self.resident_bytes >> 20,
            "minor_faults": self.minor_faults.saturating_sub(before.minor_faults),
            "major_faults": self.major_faults.saturating_sub(before.major_faults),
            "written_mb": self.written_bytes.saturating_sub(before.written_bytes) >> 20,
        })
    }
}

impl MachineReading {
    /// Of this machine now.
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self::read(&stat, &load)
    }

    fn read(stat: &str, load: &str) -> Self {
        let first = stat.lines().next().unwrap_or_default();
        let ticks: Vec<f64> = first
            .split_whitespace()
            .skip(1)
            .map(|word| word.parse().unwrap_or(0.0))
            .collect();
        // user nice system idle iowait irq softirq steal; guest time is inside user already.
        let all: f64 = ticks.iter().take(8).sum();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0.0);
        let load = load.split_whitespace().next();
        Self {
            busy_s: (all - at(3) - at(4) - at(7)) / TICKS_PER_S,
            steal_s: at(7) / TICKS_PER_S,
            total_s: all / TICKS_PER_S,
            load_1m: load.and_then(|load| load.parse().ok()).unwrap_or(0.0),
        }
    }
}

/// Share of the machine that others may take before figures are in doubt.
const OTHERS_MAX: f64 = 0.1;
/// Share of time that the machine below may keep to itself.
const STEAL_MAX: f64 = 0.02;
/// Share of the cores at which this program may be what limits the load.
const CLIENT_MAX: f64 = 0.6;

/// The machine, the server and this program at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) machine: MachineReading,
    pub(crate) server: ProcessReading,
    /// This program; the same as the server when that is embedded.
    pub(crate) own: ProcessReading,
    /// Whether they are two processes.
    pub(crate) is_apart: bool,
}

impl Reading {
    /// Now.
    pub(crate) fn now(server: Option<u32>) -> Self {
        let own = std::process::id();
        Self {
            machine: MachineReading::now(),
            server: server.map(ProcessReading::now).unwrap_or_default(),
            own: ProcessReading::now(own),
            is_apart: server != Some(own),
        }
    }

    /// Why figures taken between `before` and now are in doubt.
    pub(crate) fn doubts_since(&self, before: &Self) -> Vec<String> {
        let total = self.machine.total_s - before.machine.total_s;
        if total <= 0.0 {
            return Vec::new();
        }
        let share = |seconds: f64| seconds / total;
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let own = self.own.cpu_s - before.own.cpu_s;
        let server = self.server.cpu_s - before.server.cpu_s;
        let ours = if self.is_apart { own + server } else { own };
        let others = share(self.machine.busy_s - before.machine.busy_s - ours);
        let steal = share(self.machine.steal_s - before.machine.steal_s);
        let mut doubts = Vec::new();
        if others > OTHERS_MAX {
            doubts.push(format!(
                "machine busy: other programs took {} of the processors",
                percent(others)
            ));
        }
        if steal > STEAL_MAX {
            doubts.push(format!(
                "machine busy: {} of the time was stolen",
                percent(steal)
            ));
        }
        if self.is_apart && share(own) > CLIENT_MAX {
            doubts.push(format!(
                "the client took {} of the processors and may be the bottleneck",
                percent(share(own))
            ));
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_where_the_kernel_puts_them() {
        let stat =
            "7 (a ) b) S 1 7 7 0 -1 4194560 100 0 3 0 250 50 0 0 20 0 9 0 1000 99999 512 184";
        let io = "rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 8388608\n";
        let reading = ProcessReading::read(stat, io);
        assert_eq!(
            reading,
            ProcessReading {
                cpu_s: 3.0,
                resident_bytes: 512 * 4096,
                minor_faults: 100,
                major_faults: 3,
                written_bytes: 8 << 20,
            }
        );
        let machine = MachineReading::read("cpu  100 0 50 800 20 0 10 20 5 0\n", "2.50 1 1 1/1 1");
        assert_eq!((machine.busy_s, machine.steal_s), (1.6, 0.2));
        assert_eq!((machine.total_s, machine.load_1m), (10.0, 2.5));
        assert_eq!(ProcessReading::read("", ""), ProcessReading::default());
    }

    #[test]
    fn this_process_uses_memory_and_time() {
        let before = Reading::now(Some(std::process::id()));
        let mut x = 1u64;
        let mut after = before;
        // As long as it takes: on a busy machine a process may get little of the time.
        while after.server.cpu_s - before.server.cpu_s < 0.02 {
            for _ in 0..10_000 {
                x = std::hint::black_box(x.wrapping_mul(3));
            }
            after = Reading::now(Some(std::process::id()));
        }
        assert!(after.server.resident_bytes > 1 << 20 && !after.is_apart);
    }

    #[test]
    fn a_busy_machine_and_a_client_at_its_limit_are_told() {
        let before = Reading::default();
        let mut after = Reading {
            is_apart: true,
            ..before
        };
        after.machine.total_s = 100.0;
        after.machine.busy_s = 60.0;
        (after.own.cpu_s, after.server.cpu_s) = (5.0, 50.0);
        assert!(after.doubts_since(&before).is_empty());
        after.machine.busy_s = 75.0;
        after.machine.steal_s = 3.0;
        let doubts = after.doubts_since(&before);
        assert!(doubts[0].contains("other programs took 20 %"), "{doubts:?}");
        assert!(
            doubts[1].contains("3 % of the time was stolen"),
            "{doubts:?}"
        );
        after.own.cpu_s = 61.0;
        assert!(
            after
                .doubts_since(&before)
                .iter()
                .any(|d| d.contains("bottleneck"))
        );
    }
}
