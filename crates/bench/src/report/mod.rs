//! What comes out of a run: a folder with all figures, and pages made of them.

mod chart;
pub(crate) mod compare;
mod figures;
pub(crate) mod gate;
mod histogram_log;
mod html;
mod machine;
pub(crate) mod run;
pub(crate) mod text;
