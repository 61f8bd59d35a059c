//! The help of both commands as a golden file.

use crate::process::volcano;
use std::path::Path;

#[test]
fn the_help_of_up_and_run() {
    let mut text = String::new();
    for command in ["up", "run"] {
        let done = volcano(&[command, "--help"], Path::new("/"));
        assert_eq!(done.code, Some(0), "{}", done.all());
        text += &format!("$ volcano {command} --help\n{}\n", done.out);
    }
    insta::assert_snapshot!(text);
}
