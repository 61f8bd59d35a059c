//! The flags of klog, the log library of Volcano's programs.

use clap::ArgAction::Set;
use std::time::Duration;
use volcano_cli::go_flags::{BOOL, boolean, duration};
use volcano_runtime::logging::{Settings, Unused};

/// klog's flags. Logs go to standard error whatever they say.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Logs")]
pub struct KlogArgs {
    /// How much to log: 0 to 3 what happens, 4 also why, 5 also every step, 6 and more also libraries
    #[arg(
        short = 'v',
        long = "v",
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    v: i32,

    /// Log messages without time and level
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false")]
    skip_headers: bool,

    /// Log to standard error, which is the only place
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "true")]
    logtostderr: bool,

    /// Log to standard error, too
    #[arg(long, value_name = BOOL, value_parser = boolean)]
    alsologtostderr: Option<bool>,

    /// No effect
    #[arg(long, value_name = BOOL, value_parser = boolean, hide = true)]
    add_dir_header: Option<bool>,

    /// No effect
    #[arg(long, value_name = BOOL, value_parser = boolean, hide = true)]
    skip_log_headers: Option<bool>,

    /// No effect
    #[arg(long, value_name = BOOL, value_parser = boolean, hide = true)]
    one_output: Option<bool>,

    /// No effect
    #[arg(long, value_name = BOOL, value_parser = boolean, hide = true)]
    legacy_stderr_threshold_behavior: Option<bool>,

    /// No effect
    #[arg(long, value_name = "DIR", hide = true)]
    log_dir: Option<String>,

    /// No effect
    #[arg(long, value_name = "FILE", hide = true)]
    log_file: Option<String>,

    /// No effect
    #[arg(long, value_name = "MB", hide = true)]
    log_file_max_size: Option<u64>,

    /// No effect
    #[arg(long, value_name = "LEVEL", hide = true)]
    stderrthreshold: Option<String>,

    /// No effect
    #[arg(long, value_name = "PATTERNS", hide = true)]
    vmodule: Option<String>,

    /// No effect
    #[arg(long, value_name = "FILE:LINE", hide = true)]
    log_backtrace_at: Option<String>,

    /// No effect
    #[arg(long, value_name = "DURATION", value_parser = duration, hide = true)]
    log_flush_frequency: Option<Duration>,
}

const ONLY_STDERR: &str = "logs go to standard error";

impl KlogArgs {
    /// What is logged, and how.
    pub fn settings(&self) -> Settings {
        Settings {
            verbosity: self.v,
            skip_headers: self.skip_headers,
        }
    }

    /// Flags that were given and have no effect. A value that asks for what happens anyway is not told.
    pub fn unused(&self) -> Vec<Unused> {
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let threshold = self.stderrthreshold.as_deref().unwrap_or("INFO");
        let flags = [
            ("--logtostderr=false", !self.logtostderr, ONLY_STDERR),
            ("--log-dir", given(&self.log_dir), ONLY_STDERR),
            ("--log-file", given(&self.log_file), ONLY_STDERR),
            (
                "--log-file-max-size",
                self.log_file_max_size.is_some(),
                ONLY_STDERR,
            ),
            ("--one-output", self.one_output == Some(true), ONLY_STDERR),
            (
                "--skip-log-headers",
                self.skip_log_headers == Some(true),
                ONLY_STDERR,
            ),
            (
                "--stderrthreshold",
                !["INFO", "0"].contains(&threshold),
                "all levels go to standard error",
            ),
            (
                "--add-dir-header",
                self.add_dir_header == Some(true),
                "lines do not name source files",
            ),
            (
                "--vmodule",
                given(&self.vmodule),
                "the level is the same for all modules; use -v",
            ),
            (
                "--log-backtrace-at",
                given(&self.log_backtrace_at),
                "there are no backtraces in logs",
            ),
            (
                "--log-flush-frequency",
                self.log_flush_frequency.is_some(),
                "lines are written at once",
            ),
        ];
        let unused = flags.into_iter().filter(|(_, given, _)| *given);
        unused
            .map(|(flag, _, reason)| Unused::new(flag, reason))
            .collect()
    }
}
