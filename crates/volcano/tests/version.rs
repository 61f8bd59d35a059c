//! `--version` of the programs that serve: the lines that scripts read, whatever else is on the command line.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

const SERVERS: [&str; 3] = ["scheduler", "controller-manager", "webhook-manager"];

fn volcano(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_volcano"))
        .args(arguments)
        .output()
        .unwrap()
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn the_version_has_the_six_lines_of_vcctl() {
    let vcctl = volcano(&["vcctl", "version"]);
    let expected = out(&vcctl);
    let names: Vec<_> = expected
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    let six = [
        "API Version",
        "Version",
        "Git SHA",
        "Built At",
        "Go Version",
        "Go OS/Arch",
    ];
    assert_eq!(names, six);
    for server in SERVERS {
        for flags in [
            &["--version"][..],
            &["-version"],
            &["--version=true"],
            &["--version=T", "--kubeconfig=/nowhere", "2>&1"],
            &["--version=false", "--version"],
        ] {
            let output = volcano(&[&[server], flags].concat());
            assert_eq!(
                (out(&output), output.status.code()),
                (expected, Some(0)),
                "{server} {flags:?}"
            );
        }
    }
}

#[test]
fn a_program_that_is_not_asked_for_its_version_goes_on() {
    for server in SERVERS {
        let own = ["--webhook-url=https://x", "--admission-secret-name="];
        let more: &[&str] = if server == "webhook-manager" { &own } else { &[] };
        let flags = [server, "--version=false", "--kubeconfig=/nowhere"];
        let output = volcano(&[&flags, more].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((out(&output), output.status.code()), ("", Some(2)), "{said}");
        assert!(said.contains("error: "), "{server}: {said}");
    }
}

#[test]
fn a_version_that_is_no_truth_value_is_refused() {
    for server in SERVERS {
        let output = volcano(&[server, "--version=yes"]);
        assert_eq!((out(&output), output.status.code()), ("", Some(2)), "{server}");
    }
}
