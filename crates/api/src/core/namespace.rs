//! Namespaces.

use super::Meta;

slim! {
    /// A namespace; selectors of namespaces look at its labels.
    pub struct Namespace {
        /// Name, labels, annotations.
        pub metadata: Meta,
    }
}
