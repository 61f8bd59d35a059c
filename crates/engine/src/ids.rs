//! Typed dense ids: each indexes a vector, and none can be taken for another.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $repr:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub $repr);

        impl $name {
            /// The id as a vector index.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of a vector index; the model never holds more than `u32::MAX` objects of a kind.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(<$repr>::try_from(index).expect("the model holds fewer objects than its ids can number"))
            }
        }
    };
}

id!(
    /// A node.
    NodeId,
    u32
);
id!(
    /// A pod, as the scheduler sees it.
    TaskId,
    u32
);
id!(
    /// A PodGroup with its tasks.
    JobId,
    u32
);
id!(
    /// A queue.
    QueueId,
    u32
);
id!(
    /// A task class: all that a filter or a score can see of a pod, apart from other pods.
    ClassId,
    u32
);
id!(
    /// An interned string.
    Sym,
    u32
);
id!(
    /// A resource dimension.
    DimId,
    u16
);
