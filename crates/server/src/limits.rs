//! Open files: the soft limit is raised to the hard one at the start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Below this many open files a few hundred collections get tight.
const COMFORTABLE_FILES_MIN: u64 = 10_000;

/// Raises the soft limit of open files to the hard one and says what it is.
pub(crate) fn raise_open_files() {
    let before = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    let limit = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => before.maximum,
        Err(error) => {
            tracing::warn!("The limit of open files could not be raised: {error}");
            before.current
        }
    };
    match limit {
        Some(files) if files < COMFORTABLE_FILES_MIN => tracing::warn!(
            "At most {files} open files are allowed; raise the hard limit (ulimit -Hn) to \
             {COMFORTABLE_FILES_MIN} or more when many collections are kept"
        ),
        Some(files) => tracing::debug!("Up to {files} open files"),
        None => tracing::debug!("Any number of open files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limit_becomes_the_hard_one() {
        raise_open_files();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
