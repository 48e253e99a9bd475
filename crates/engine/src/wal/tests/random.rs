//! Random appends, syncs, truncations, kills and power losses against a model.

use flatwater_segment::SeqNo;
use proptest::prelude::*;

use super::disk::{Faults, TestDisk};
use super::{Replayed, WalOptions, open_with};
use crate::wal::{Wal, file_name};

#[derive(Clone, Debug)]
enum Step {
    Append(u16),
    /// An append that fails after so many bytes.
    FailedAppend(usize),
    Sync,
    /// Moves the floor by so much of what is synced, in percent.
    Truncate(u8),
    Kill,
    /// Seed of what survives, and after how many changes the next opening is interrupted.
    PowerLoss(u64, Option<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0_u16..400).prop_map(Step::Append),
        2 => (0_usize..60).prop_map(Step::FailedAppend),
        4 => Just(Step::Sync),
        2 => (0_u8..=100).prop_map(Step::Truncate),
        1 => Just(Step::Kill),
        2 => (any::<u64>(), proptest::option::of(0_usize..8))
            .prop_map(|(seed, interrupted)| Step::PowerLoss(seed, interrupted)),
    ]
}

/// The log, and what must be in it.
struct World {
    disk: TestDisk,
    wal: Option<Wal>,
    /// Body of record i + 1.
    bodies: Vec<Vec<u8>>,
    floor: SeqNo,
    made: u64,
}

impl World {
    fn options(&self) -> WalOptions {
        WalOptions {
            file_bytes: 700,
            floor: self.floor,
            synced: self.floor,
        }
    }

    fn wal(&mut self) -> &mut Wal {
        self.wal.as_mut().unwrap()
    }

    /// Opens, and checks that all up to `certain` are there and nothing that was never appended.
    fn reopen(&mut self, certain: SeqNo) -> Replayed {
        let (wal, replayed, found) = open_with(self.disk.dir(), self.options()).unwrap();
        let last = replayed.last_seq;
        assert!(last >= certain, "{last} records, {certain} were certain");
        let expected = self.bodies[self.floor as usize..last as usize].iter();
        let expected = (self.floor + 1..)
            .zip(expected.cloned())
            .collect::<Vec<_>>();
        assert_eq!(found, expected);
        assert_eq!(wal.next_seq(), last + 1);
        assert_eq!(wal.syncer().synced_seq(), last);
        self.bodies.truncate(last as usize);
        self.wal = Some(wal);
        replayed
    }

    fn run(&mut self, step: Step) {
        let seq = self.bodies.len() as SeqNo + 1;
        // Never the same bytes twice, so that a stale record cannot pass for a new one.
        self.made += 1;
        let made = self.made;
        match step {
            Step::Append(len) => {
                let body = [&made.to_le_bytes()[..], &vec![made as u8; len.into()]].concat();
                self.wal().append(seq, &body).unwrap();
                self.bodies.push(body);
            }
            Step::FailedAppend(written) => {
                let fault = Faults {
                    append_after: Some(written),
                    ..Faults::default()
                };
                self.disk.set_faults(fault);
                let body = vec![made as u8; 30];
                // It goes through when the fault hit the header of a new file instead.
                if self.wal().append(seq, &body).is_ok() {
                    self.bodies.push(body);
                }
                self.disk.set_faults(Faults::default());
            }
            Step::Sync => {
                assert_eq!(self.wal().syncer().sync().unwrap(), seq - 1);
            }
            Step::Truncate(percent) => {
                let sync = self.wal().syncer();
                self.floor = self
                    .floor
                    .max(sync.synced_seq() * SeqNo::from(percent) / 100);
                sync.truncate_below(self.floor).unwrap();
            }
            Step::Kill => {
                self.wal = None;
                assert_eq!(self.reopen(seq - 1).cut, None);
            }
            Step::PowerLoss(seed, interrupted) => self.lose_power(seed, interrupted),
        }
    }

    fn lose_power(&mut self, seed: u64, interrupted: Option<usize>) {
        let certain = self.wal().syncer().synced_seq();
        // The disk as it is, before the closing of the log could change it.
        let mut state = seed | 1;
        let mut choose = |outcomes: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % outcomes
        };
        let after = self.disk.after_power_loss(&mut choose);
        self.wal = None;
        self.disk = after;
        if let Some(changes) = interrupted {
            let fault = Faults {
                changes_left: Some(changes),
                ..Faults::default()
            };
            self.disk.set_faults(fault);
            drop(open_with(self.disk.dir(), self.options()));
            self.disk.set_faults(Faults::default());
            self.disk = self.disk.after_power_loss(&mut choose);
        }
        self.reopen(certain);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn synced_records_survive_power_loss_and_appended_ones_a_kill(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        let mut world = World {
            disk: TestDisk::default(),
            wal: None,
            bodies: Vec::new(),
            floor: 0,
            made: 0,
        };
        world.reopen(0);
        for step in steps {
            world.run(step);
        }
        world.wal = None;
        let all = world.bodies.len() as SeqNo;
        world.reopen(all);
    }

    #[test]
    fn random_bytes_in_a_log_file_never_panic(
        header in any::<bool>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let disk = TestDisk::default();
        let options = WalOptions { file_bytes: 700, floor: 0, synced: 0 };
        let mut file = Vec::new();
        if header {
            let (mut wal, ..) = open_with(disk.dir(), options).unwrap();
            wal.append(1, b"first").unwrap();
            file = disk.dir().read(&file_name(1)).unwrap();
        }
        file.extend(bytes);
        disk.put(&file_name(1), file);
        let (_, replayed, _) = open_with(disk.dir(), options).unwrap();
        prop_assert_eq!(replayed.last_seq, u64::from(header));
    }
}
