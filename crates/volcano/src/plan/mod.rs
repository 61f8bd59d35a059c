//! `volcano plan`: scheduling cycles over objects from files, with nothing written anywhere.
//!
//! ```text
//! files --input--> objects --+--> session (the engine) --> outcome --> table | JSON | YAML
//! Job ----submit--> objects -+                                    \--> case: compared with what is expected
//! ```
//!
//! Only `session` knows the engine; everything after it works on plain text and numbers.

pub mod admission;
pub mod case;
pub mod cluster;
pub mod input;
pub mod known;
pub mod objects;
pub mod outcome;
pub mod output;
pub mod session;
pub mod source;
pub mod submit;
pub mod table;
