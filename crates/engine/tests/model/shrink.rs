//! Makes a failing trace short: steps, points and ids are left out while it still fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::run::run;
use crate::step::{Step, Trace, Which, Write};

/// Longest time spent on one trace.
const TIME_MAX: Duration = Duration::from_secs(90);

/// What goes wrong in a trace, panics included.
pub(crate) fn failure(trace: &Trace) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| run(trace))) {
        Ok(outcome) => outcome.err(),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Some(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

/// A short trace that `fails`, from one that does (delta debugging: Zeller and Hildebrandt, "Simplifying and
/// Isolating Failure-Inducing Input", TSE 2002).
pub(crate) fn shrink(trace: Trace, fails: &mut dyn FnMut(&Trace) -> bool) -> Trace {
    let deadline = Instant::now() + TIME_MAX;
    let setup = trace.setup;
    let mut fails = |steps: &[Step]| {
        let steps = steps.to_vec();
        Instant::now() < deadline && fails(&Trace { setup, steps })
    };
    let mut steps = fewer(trace.steps, &mut fails);
    for place in 0..steps.len() {
        let Step::Write { write, wait } = steps[place].clone() else {
            continue;
        };
        let mut fails_with = |write: Write| {
            let mut changed = steps.clone();
            changed[place] = Step::Write { write, wait };
            fails(&changed)
        };
        let write = smaller(write, &mut fails_with);
        steps[place] = Step::Write { write, wait };
    }
    Trace { setup, steps }
}

/// Leaves out parts of the list, in halves, quarters and so on, while it fails without them.
fn fewer<T: Clone>(mut items: Vec<T>, fails: &mut dyn FnMut(&[T]) -> bool) -> Vec<T> {
    let mut part = items.len().div_ceil(2);
    while part > 0 && !items.is_empty() {
        let mut from = 0;
        let before = items.len();
        while from < items.len() {
            let mut rest = items.clone();
            rest.drain(from..(from + part).min(items.len()));
            if fails(&rest) {
                items = rest;
            } else {
                from += part;
            }
        }
        part = match part {
            1 if items.len() < before => 1,
            _ => part / 2,
        };
    }
    items
}

/// Leaves out points and ids of a write.
fn smaller(write: Write, fails: &mut dyn FnMut(Write) -> bool) -> Write {
    match write {
        Write::Upsert(points) => {
            let mut fails = |points: &[_]| fails(Write::Upsert(points.to_vec()));
            Write::Upsert(fewer(points, &mut fails))
        }
        Write::Delete(Which::Ids(ids)) => {
            let mut fails = |ids: &[_]| fails(Write::Delete(Which::Ids(ids.to_vec())));
            Write::Delete(Which::Ids(fewer(ids, &mut fails)))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn a_failing_trace_shrinks_to_the_steps_that_matter() {
        // Fails whenever a drop comes after a stop, wherever they are.
        let trace = generate::trace(3, 1500);
        let mut fails = |trace: &Trace| {
            let stop = trace.steps.iter().position(|step| *step == Step::Stop);
            let drop = trace.steps.iter().rposition(|step| *step == Step::Drop);
            matches!((stop, drop), (Some(stop), Some(drop)) if stop < drop)
        };
        assert!(fails(&trace));
        let short = shrink(trace, &mut fails);
        assert_eq!(short.steps, [Step::Stop, Step::Drop]);
        assert_eq!(Trace::from_text(&short.to_text()), short);
    }
}
