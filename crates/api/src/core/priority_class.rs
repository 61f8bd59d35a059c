//! Priority classes.

use super::Meta;

slim! {
    /// A name for a priority.
    pub struct PriorityClass {
        /// Name.
        pub metadata: Meta,
        /// The priority; higher goes first.
        pub value: i32,
        /// Whether pods and groups without a class have this one.
        pub global_default: bool,
        /// `Never` or `PreemptLowerPriority` (default).
        pub preemption_policy: Option<String>,
    }
}
