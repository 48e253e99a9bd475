//! Runs a trace on the engine and on plain maps, and compares.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_engine::collection::info::Status;
use flatwater_engine::engine::{Collection, Engine};
use flatwater_engine::error::EngineError;

use crate::check::{NAME, Outcome, answers, contents, difference, ensure, told};
use crate::plain::{Plain, World};
use crate::step::{Setup, Step, Trace, Write};
use crate::storage::Storage;

/// Runs a trace; says at which step what went wrong.
pub(crate) fn run(trace: &Trace) -> Outcome {
    let mut run = Run::begin(trace.setup)?;
    for (number, step) in trace.steps.iter().enumerate() {
        run.take(step)
            .map_err(|what| format!("step {number}, {}: {what}", name_of(step)))?;
    }
    Ok(())
}

/// Waits until the plan is empty, which it must be at some time.
fn settle(collection: &Collection) -> Outcome {
    let begin = Instant::now();
    while collection.info().status != Status::Green {
        ensure!(
            begin.elapsed() < Duration::from_secs(60),
            "not settled: {:?}",
            collection.optimizations()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn name_of(step: &Step) -> String {
    let text = serde_json::to_string(step).unwrap();
    text.chars().take(120).collect()
}

struct Run {
    setup: Setup,
    storage: Storage,
    /// `None` only while it is opened again.
    engine: Option<Arc<Engine>>,
    world: World,
    /// What was durable for certain, and what was acknowledged since without a sync.
    durable: World,
    since: Vec<Write>,
}

impl Run {
    fn begin(setup: Setup) -> Outcome<Self> {
        let storage = Storage::new(setup.on_files);
        let engine = told("opening", storage.open())?;
        Ok(Self {
            setup,
            storage,
            engine: Some(engine),
            world: None,
            durable: None,
            since: Vec::new(),
        })
    }

    fn engine(&self) -> &Engine {
        self.engine
            .as_ref()
            .expect("an engine is open between steps")
    }

    fn take(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Create if self.world.is_none() => {
                let config = self.setup.config();
                told("creating", self.engine().create_collection(NAME, config))?;
                self.world = Some(Plain::default());
                self.all_is_durable();
            }
            Step::Drop if self.world.is_some() => {
                told("deleting", self.engine().delete_collection(NAME))?;
                self.world = None;
                self.all_is_durable();
            }
            Step::Write { write, wait } => self.write(write, *wait)?,
            Step::Check { seed } => {
                if let Some(plain) = &self.world {
                    let collection = told("collection", self.engine().collection(NAME))?;
                    answers(&collection, plain, *seed)?;
                }
            }
            Step::Stop => {
                let engine = self.engine.take().expect("an engine is open");
                told("stopping", engine.shutdown())?;
                drop(engine);
                self.open_again()?;
            }
            Step::Kill => {
                let engine = self.engine.take().expect("an engine is open");
                self.storage.kill(engine);
                self.open_again()?;
            }
            Step::PowerLoss { seed } => self.cut_power(*seed)?,
            Step::Settings(settings) if self.world.is_some() => {
                let collection = told("collection", self.engine().collection(NAME))?;
                let change = |config: &_| Ok::<_, EngineError>(settings.apply(config));
                told("changing the settings", collection.reconfigure(change))?;
            }
            Step::Cancel if self.world.is_some() => {
                let collection = told("collection", self.engine().collection(NAME))?;
                for job in collection.optimizations().running {
                    collection.cancel_job(job.id);
                }
            }
            Step::Settle if self.world.is_some() => {
                let collection = told("collection", self.engine().collection(NAME))?;
                settle(&collection)?;
            }
            Step::Settings(_) | Step::Cancel | Step::Settle => {}
            // A shrunk trace may create twice, or delete what is not there.
            Step::Create | Step::Drop => {}
        }
        Ok(())
    }

    fn write(&mut self, write: &Write, wait: bool) -> Outcome {
        let Some(plain) = &mut self.world else {
            return Ok(());
        };
        let engine = self.engine.as_ref().expect("an engine is open");
        let collection = told("collection", engine.collection(NAME))?;
        let outcome = collection.update_blocking(write.update(), wait);
        if plain.refuses(write) {
            ensure!(
                outcome.is_err(),
                "a write that cannot be applied was accepted: {write:?}"
            );
            return Ok(());
        }
        told("writing", outcome)?;
        plain.apply(write);
        if wait {
            self.all_is_durable();
        } else {
            self.since.push(write.clone());
        }
        Ok(())
    }

    fn all_is_durable(&mut self) {
        self.durable = self.world.clone();
        self.since.clear();
    }

    /// Opens what was left of the storage, where everything that was acknowledged must be; opening makes it durable.
    fn open_again(&mut self) -> Outcome {
        let engine = told("opening again", self.storage.open())?;
        let found = contents(&engine)?;
        ensure!(found == self.world, "{}", difference(&found, &self.world));
        self.engine = Some(engine);
        self.all_is_durable();
        Ok(())
    }

    /// After a power loss the writes up to some point must be there, all that were synced among them.
    fn cut_power(&mut self, seed: u64) -> Outcome {
        let engine = self.engine.take().expect("an engine is open");
        self.storage.cut_power(engine, seed);
        let engine = told("opening after a power loss", self.storage.open())?;
        let found = contents(&engine)?;
        let durable = difference(&found, &self.durable);
        let mut world = self.durable.clone();
        let mut since = self.since.iter();
        while found != world {
            let (Some(plain), Some(write)) = (&mut world, since.next()) else {
                let all = difference(&found, &self.world);
                return Err(format!(
                    "after a power loss no moment since the last sync; with it: {durable}; now: {all}"
                ));
            };
            plain.apply(write);
        }
        self.world = found;
        self.engine = Some(engine);
        self.all_is_durable();
        Ok(())
    }
}
