//! Random tests that can be repeated: the seed of a run is in its output, as the command that runs it again.

/// Variable that sets the seed.
const VARIABLE: &str = "VOLCANO_SEED";

/// The seed of a test: from the environment, or a new one. Prints how to repeat the run.
///
/// # Panics
/// When the variable is no number.
pub fn seed(file: &str, test: &str) -> u64 {
    let seed = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().expect("VOLCANO_SEED is a number"),
        Err(_) => fastrand::u64(..1 << 32),
    };
    eprintln!(
        "to repeat: {VARIABLE}={seed} cargo test --package volcano-cluster-tests --test {file} -- --exact {test}"
    );
    seed
}
