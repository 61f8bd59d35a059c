//! Tests of the slim views, by concern.

mod decode;
mod requests;
mod selectors;
