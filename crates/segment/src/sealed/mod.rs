//! A sealed segment: immutable mapped files, and one small file for what happens to its rows later.
//!
//! 1. `layout` names the files.
//! 2. `seal` writes them from a view of a growing segment whose graphs are complete.
//! 3. `open` maps them; `state` records stamps and payload changes, like a growing segment's
//!    checkpoint.
//! 4. `verify` reads everything and names what does not check.

mod layout;
pub mod open;
pub mod seal;
pub(crate) mod state;
pub mod verify;

pub(crate) use layout::is_sealed_dir;
