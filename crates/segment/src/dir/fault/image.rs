//! What the next process finds: after a kill, and after a power loss.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::dice::Dice;
use super::faults::Faults;
use super::{Change, Entries, FaultDirectory, Node};
use crate::dir::Result;

/// What a power loss does to bytes and names that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsynced {
    /// All of them are lost.
    Lost,
    /// All of them were written in time, but what a failed sync left out.
    Kept,
    /// Each page, suffix and name is kept or lost as this seed has it.
    Seeded(u64),
}

/// [`Unsynced`] at work.
#[derive(Debug)]
pub(super) enum Choice {
    Lost,
    Kept,
    Seeded(Dice),
}

impl Choice {
    /// Whether the next page or name is kept.
    pub(super) fn keeps(&mut self) -> bool {
        match self {
            Self::Lost => false,
            Self::Kept => true,
            Self::Seeded(dice) => dice.roll(2) == 0,
        }
    }
}

impl From<Unsynced> for Choice {
    fn from(unsynced: Unsynced) -> Self {
        match unsynced {
            Unsynced::Lost => Self::Lost,
            Unsynced::Kept => Self::Kept,
            Unsynced::Seeded(seed) => Self::Seeded(Dice::new(seed)),
        }
    }
}

/// Copies of the nodes that were met already: a node may have several names.
type Copies = HashMap<usize, Node>;

impl FaultDirectory {
    /// What a new process finds after this one was killed: all that it wrote, synced or not, on a
    /// disk that counts anew. A later power loss may still take what was not synced.
    ///
    /// # Errors
    /// `Io` without memory for the copy.
    pub fn after_kill(&self) -> Result<Self> {
        let faults = Arc::new(self.faults.restarted());
        self.copy(&faults, &mut Copies::new())
    }

    /// What a new process finds after a power loss, on a disk that counts anew.
    ///
    /// # Errors
    /// `Io` without memory for the copy.
    pub fn after_power_loss(&self, unsynced: Unsynced) -> Result<Self> {
        let faults = Arc::new(self.faults.restarted());
        self.survivor(&faults, &mut unsynced.into())
    }

    fn copy(&self, faults: &Arc<Faults>, copies: &mut Copies) -> Result<Self> {
        let entries = self.entries.lock();
        let mut copy_all = |names: &BTreeMap<String, Node>| {
            names
                .iter()
                .map(|(name, node)| Ok((name.clone(), node.copy(faults, copies)?)))
                .collect::<Result<BTreeMap<_, _>>>()
        };
        let (live, durable) = (copy_all(&entries.live)?, copy_all(&entries.durable)?);
        let mut unsynced = Vec::new();
        for change in &entries.unsynced {
            unsynced.push(match change {
                Change::Set(name, node) => Change::Set(name.clone(), node.copy(faults, copies)?),
                Change::Remove(name) => Change::Remove(name.clone()),
                Change::Rename(from, to, node) => {
                    Change::Rename(from.clone(), to.clone(), node.copy(faults, copies)?)
                }
            });
        }
        let entries = Entries {
            live,
            durable,
            unsynced,
        };
        Ok(Self::at(self.path.clone(), Arc::clone(faults), entries))
    }

    fn survivor(&self, faults: &Arc<Faults>, choice: &mut Choice) -> Result<Self> {
        let entries = self.entries.lock();
        let mut names = entries.durable.clone();
        for change in &entries.unsynced {
            if choice.keeps() {
                change.apply(&mut names);
            }
        }
        let mut live = BTreeMap::new();
        for (name, node) in names {
            live.insert(name, node.survivor(faults, choice)?);
        }
        let entries = Entries {
            durable: live.clone(),
            live,
            unsynced: Vec::new(),
        };
        Ok(Self::at(self.path.clone(), Arc::clone(faults), entries))
    }
}

impl Node {
    fn address(&self) -> usize {
        match self {
            Self::Region(region) => Arc::as_ptr(region).addr(),
            Self::File(file) => Arc::as_ptr(file).addr(),
            Self::Folder(folder) => Arc::as_ptr(folder).addr(),
        }
    }

    fn copy(&self, faults: &Arc<Faults>, copies: &mut Copies) -> Result<Self> {
        if let Some(copy) = copies.get(&self.address()) {
            return Ok(copy.clone());
        }
        let copy = match self {
            Self::Region(region) => Self::Region(Arc::new(region.after_kill(faults)?)),
            Self::File(file) => Self::File(Arc::new(file.after_kill(faults))),
            Self::Folder(folder) => Self::Folder(Arc::new(folder.copy(faults, copies)?)),
        };
        copies.insert(self.address(), copy.clone());
        Ok(copy)
    }

    fn survivor(&self, faults: &Arc<Faults>, choice: &mut Choice) -> Result<Self> {
        Ok(match self {
            Self::Region(region) => {
                Self::Region(Arc::new(region.after_power_loss(faults, choice)?))
            }
            Self::File(file) => Self::File(Arc::new(file.after_power_loss(faults, choice))),
            Self::Folder(folder) => Self::Folder(Arc::new(folder.survivor(faults, choice)?)),
        })
    }
}
