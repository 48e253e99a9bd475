//! One choice of kernels for the whole process, made once.
//!
//! 1. A server may call [`select`] at start with what its settings say.
//! 2. Otherwise the first call of [`kernels`] takes the best table the CPU can run.
//! 3. From then on the choice stands, so that one process gives one answer to the last bit.

use std::fmt;
use std::sync::OnceLock;

use super::{Kernels, scalar};

/// An instruction set to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Plain Rust; on every architecture.
    Scalar,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F, BW, VNNI and VPOPCNTDQ.
    Avx512,
    /// The best that the CPU can run.
    Auto,
}

/// Why [`select`] refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectError {
    /// This CPU lacks an instruction of that level.
    Unsupported {
        /// What was asked for.
        level: Level,
    },
    /// Another choice stands already and is in use.
    AlreadyChosen {
        /// The name of the table in use.
        name: &'static str,
    },
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { level } => {
                write!(f, "this CPU cannot run the {level:?} kernels; use Auto")
            }
            Self::AlreadyChosen { name } => {
                write!(
                    f,
                    "the {name} kernels are in use already; select before the first search"
                )
            }
        }
    }
}

impl std::error::Error for SelectError {}

static CHOSEN: OnceLock<&'static Kernels> = OnceLock::new();

/// The kernels of this process: those of [`select`], or the best ones from the first use on.
#[inline]
#[must_use]
pub fn kernels() -> &'static Kernels {
    CHOSEN.get_or_init(best)
}

/// Fixes the kernels of this process, before their first use.
///
/// # Errors
///
/// `Unsupported` if this CPU cannot run them, `AlreadyChosen` if other ones are in use; asking for
/// the ones in use is no error.
pub fn select(level: Level) -> Result<&'static Kernels, SelectError> {
    let wanted = find(level).ok_or(SelectError::Unsupported { level })?;
    let chosen = CHOSEN.get_or_init(|| wanted);
    if std::ptr::eq(*chosen, wanted) {
        Ok(chosen)
    } else {
        Err(SelectError::AlreadyChosen { name: chosen.name })
    }
}

/// Every table this CPU can run, the reference first and the best last.
#[must_use]
pub fn available() -> Vec<&'static Kernels> {
    [Level::Scalar, Level::Avx2, Level::Avx512]
        .into_iter()
        .filter_map(find)
        .collect()
}

fn best() -> &'static Kernels {
    find(Level::Avx512)
        .or_else(|| find(Level::Avx2))
        .unwrap_or(&scalar::KERNELS)
}

#[cfg(target_arch = "x86_64")]
fn find(level: Level) -> Option<&'static Kernels> {
    match level {
        Level::Scalar => Some(&scalar::KERNELS),
        Level::Avx2 => super::avx2::detect(),
        Level::Avx512 => super::avx512::detect(),
        Level::Auto => Some(best()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn find(level: Level) -> Option<&'static Kernels> {
    match level {
        Level::Scalar | Level::Auto => Some(&scalar::KERNELS),
        Level::Avx2 | Level::Avx512 => None,
    }
}
