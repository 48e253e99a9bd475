//! How far a job is: a tree of steps, as users see it.

use crate::clock;

/// Parts of the time of a rewrite that its copies and its codes take; the graphs take the rest.
const COPY_SHARE: f64 = 0.05;
const CODES_SHARE: f64 = 0.05;

/// A step of a job, with the steps inside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Name of the step; a vector's or field's where it is about one.
    pub name: String,
    /// When it began, milliseconds since 1970; none if it has not.
    pub started_at_ms: Option<u64>,
    /// When it ended.
    pub finished_at_ms: Option<u64>,
    /// Rows done.
    pub done: Option<u64>,
    /// Rows in all.
    pub total: Option<u64>,
    /// Steps inside, in their order.
    pub children: Vec<Progress>,
}

impl Progress {
    /// A step that begins now.
    #[must_use]
    pub fn begun(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            started_at_ms: Some(clock::unix_ms()),
            ..Self::default()
        }
    }

    /// Ends the step and what is open inside it.
    pub fn finish(&mut self) {
        if self.started_at_ms.is_some() && self.finished_at_ms.is_none() {
            self.finished_at_ms = Some(clock::unix_ms());
        }
        self.children.iter_mut().for_each(Self::finish);
    }

    /// Sets the numbers of the step at `path` below this one, beginning the steps on the way. Where
    /// another child begins, those before it end.
    pub fn set(&mut self, path: &[&str], done: u64, total: u64) {
        let Some((first, rest)) = path.split_first() else {
            (self.done, self.total) = (Some(done), Some(total));
            return;
        };
        let place = match self.children.iter().position(|child| child.name == *first) {
            Some(place) => place,
            None => {
                self.children.iter_mut().for_each(Self::finish);
                self.children.push(Self::begun(first));
                self.children.len() - 1
            }
        };
        self.children[place].set(rest, done, total);
    }

    /// The share that is done of a job that writes segments of so many vectors anew.
    #[must_use]
    pub fn share_of_rewrite(&self, vectors: usize) -> f64 {
        let weights = [
            ("copy_data", COPY_SHARE),
            ("quantization", CODES_SHARE),
            ("vector_index", 1.0 - COPY_SHARE - CODES_SHARE),
        ];
        let of_step = |(name, weight): (&str, f64)| {
            let step = self.children.iter().find(|step| step.name == name);
            let Some(step) = step else { return 0.0 };
            let inner = step.children.iter().map(Self::share).sum::<f64>();
            let of_vectors = inner / vectors.max(1) as f64;
            weight
                * if step.children.is_empty() {
                    step.share()
                } else {
                    of_vectors.min(1.0)
                }
        };
        weights.into_iter().map(of_step).sum()
    }

    /// The share that is done of the rows of the last step that counts them.
    fn share(&self) -> f64 {
        let (done, total) = self.counts().unwrap_or_default();
        if total == 0 {
            0.0
        } else {
            done as f64 / total as f64
        }
    }

    /// Rows done and in all of the last step that counts rows.
    #[must_use]
    pub fn counts(&self) -> Option<(u64, u64)> {
        let inner = self.children.iter().rev().find_map(Self::counts);
        inner.or_else(|| Some((self.done?, self.total?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_begin_when_they_are_named_and_end_when_the_next_one_begins() {
        let mut root = Progress::begun("job");
        root.set(&["copy_data"], 1, 10);
        root.set(&["copy_data"], 10, 10);
        root.set(&["vector_index", "a", "main_graph"], 3, 10);
        assert_eq!(root.children.len(), 2);
        assert!(root.children[0].finished_at_ms.is_some());
        assert!(root.children[1].finished_at_ms.is_none());
        assert_eq!(root.counts(), Some((3, 10)));
        root.finish();
        let graph = &root.children[1].children[0].children[0];
        assert_eq!(graph.name, "main_graph");
        assert!(graph.finished_at_ms.is_some() && root.finished_at_ms.is_some());
    }
}
