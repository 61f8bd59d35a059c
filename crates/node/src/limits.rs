//! What this process may have open. The usual limit of 1,024 files is less than the pods of a full node need.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Pipes, logs and namespaces of a pod, with some to spare.
const FILES_OF_A_POD: u64 = 8;
/// No less is asked for: connections and watches need some too.
const FILES: u64 = 65_536;

/// Raises the limit of open files as far as so many pods need it and the machine lets it. Not further: it is what pods have
/// too, and there are programs that close every file up to it.
pub(crate) fn raise(pods: u32) {
    let needed = u64::from(pods) * FILES_OF_A_POD;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let wanted = needed.max(FILES).min(hard);
    let raised = soft >= wanted || setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok();
    let has = if raised { soft.max(wanted) } else { soft };
    if has < needed {
        tracing::warn!(
            files = has,
            needed,
            "not all pods of this node can run at the same time: the limit of open files is too low (ulimit -Hn)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 256.min(hard), hard).unwrap();
        raise(250);
        let raised = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!(raised, (FILES.min(hard), hard));
    }
}
