//! A sealed segment: immutable mapped files, and one small file for what happens to its rows later.
//!
//! 1. `layout` names the files.
//! 2. `seal` writes them from a view of a growing segment whose graphs are complete; `merge` from the live
//!    rows of sealed ones; `files` holds what both write alike.
//! 3. `open` maps them; `state` records stamps and payload changes, like a growing segment's
//!    checkpoint.
//! 4. `verify` reads everything and names what does not check.

mod files;
mod layout;
pub mod merge;
pub mod open;
pub mod seal;
pub(crate) mod state;
pub mod verify;

pub(crate) use layout::is_sealed_dir;
