//! What the code of a pure crate names: paths into `std` that reach a clock, files, variables, threads or sockets,
//! hash maps with a random seed, and macros that print. Code that is compiled for tests only is not looked at.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::tokens::{Token, tokens};

/// Modules of `std` that are not pure.
const FORBIDDEN_MODULES: &[&str] = &["env", "fs", "io", "net", "os", "process", "thread"];

/// Names that are not pure wherever they come from.
const FORBIDDEN_NAMES: &[&str] = &["HashMap", "HashSet", "Instant", "RandomState", "SystemTime"];

/// Macros that print.
const FORBIDDEN_MACROS: &[&str] = &["dbg", "eprint", "eprintln", "print", "println"];

/// A source file: where it is, and its text.
pub type SourceFile = (PathBuf, String);

/// Every Rust file below a folder that is not for tests only, sorted by path.
///
/// # Errors
/// When a folder or file cannot be read.
pub fn read_crate(folder: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text =
                    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                files.push((path, text));
            }
        }
    }
    files.sort();
    Ok(without_test_files(files))
}

/// Leaves out the files of modules that some file declares for tests only.
fn without_test_files(mut files: Vec<SourceFile>) -> Vec<SourceFile> {
    let mut test_only = Vec::new();
    for (path, text) in &files {
        let (_, modules) = without_tests(&tokens(text));
        test_only.extend(modules.iter().map(|module| module_folder(path).join(module)));
    }
    files.retain(|(path, _)| {
        let file = |module: &PathBuf| path.starts_with(module) || *path == module.with_extension("rs");
        !test_only.iter().any(file)
    });
    files
}

/// The folder in which the modules that a file declares have their files.
fn module_folder(file: &Path) -> PathBuf {
    match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") => file.parent().unwrap_or(file).to_owned(),
        _ => file.with_extension(""),
    }
}

/// Impure uses in a text, each with its line.
pub fn impure(text: &str) -> Vec<(usize, String)> {
    let (tokens, _) = without_tests(&tokens(text));
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let next = text_at(&tokens, at + 1);
        if FORBIDDEN_NAMES.contains(&token.text) {
            found.push((token.line, format!("{} is not pure", token.text)));
        } else if FORBIDDEN_MACROS.contains(&token.text) && next == "!" {
            found.push((token.line, format!("{}! is not pure", token.text)));
        } else if token.text == "std" && next == "as" {
            found.push((token.line, "std under another name cannot be checked".to_owned()));
        } else if token.text == "std" && next == "::" {
            let mut paths = Vec::new();
            read_paths(&tokens, at + 2, &[], &mut paths);
            let impure = paths
                .into_iter()
                .filter(|(_, path)| FORBIDDEN_MODULES.contains(&path[0]));
            found.extend(impure.map(|(line, path)| (line, format!("std::{} is not pure", path.join("::")))));
        }
    }
    found
}

/// Reads a tree of paths such as `a::b` or `{a, b::{c, d}}`, and returns the position behind it.
fn read_paths<'a>(
    tokens: &[Token<'a>],
    at: usize,
    prefix: &[&'a str],
    found: &mut Vec<(usize, Vec<&'a str>)>,
) -> usize {
    let Some(token) = tokens.get(at) else { return at };
    if token.text == "{" {
        let mut at = at + 1;
        while tokens.get(at).is_some_and(|token| token.text != "}") {
            at = read_paths(tokens, at, prefix, found);
        }
        return at + 1;
    }
    if !token.is_word && token.text != "*" {
        return at + 1;
    }
    let path: Vec<&str> = prefix.iter().copied().chain([token.text]).collect();
    let goes_on = text_at(tokens, at + 1) == "::"
        && tokens
            .get(at + 2)
            .is_some_and(|next| next.is_word || matches!(next.text, "{" | "*"));
    if goes_on {
        return read_paths(tokens, at + 2, &path, found);
    }
    found.push((token.line, path));
    match text_at(tokens, at + 1) {
        "as" => at + 3,
        _ => at + 1,
    }
}

/// The tokens without the items that are for tests only, and the modules among those that have files of their own.
fn without_tests<'a>(tokens: &[Token<'a>]) -> (Vec<Token<'a>>, Vec<&'a str>) {
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match test_attribute_end(tokens, at) {
            None => {
                kept.push(tokens[at]);
                at += 1;
            }
            Some(item) => {
                let end = item_end(tokens, item);
                let words: Vec<_> = tokens[item..end].iter().map(|token| token.text).collect();
                if let Some(place) = words.iter().position(|word| *word == "mod")
                    && words.get(place + 2) == Some(&";")
                {
                    modules.push(words[place + 1]);
                }
                at = end;
            }
        }
    }
    (kept, modules)
}

/// The position behind `#[cfg(test)]`, or `cfg` with `test` among other things, if it is at this place.
fn test_attribute_end(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    if text_at(tokens, at) != "#" || text_at(tokens, at + 1) != "[" || text_at(tokens, at + 2) != "cfg" {
        return None;
    }
    let end = closing(tokens, at + 1);
    let inside = &tokens[at + 3..end - 1];
    let names = |word: &str| inside.iter().any(|token| token.text == word);
    (names("test") && !names("not") && !names("any")).then_some(end)
}

/// The position behind an item: behind its `;`, or behind its block.
fn item_end(tokens: &[Token<'_>], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].text {
            ";" => return at + 1,
            "{" => return closing(tokens, at),
            "(" | "[" => at = closing(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// The position behind the bracket that closes the one at this place.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn text_at<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        impure(text)
            .into_iter()
            .map(|(line, what)| format!("{line}: {what}"))
            .collect()
    }

    #[test]
    fn every_way_to_name_an_impure_module_is_found() {
        let cases = [
            ("use std::fs;", "1: std::fs is not pure"),
            ("use std::env as e;", "1: std::env is not pure"),
            ("use std::net::TcpStream;", "1: std::net::TcpStream is not pure"),
            (
                "use std::{fmt, process::Command};",
                "1: std::process::Command is not pure",
            ),
            (
                "use std::{cmp as c,\n    io::{self as i, Read}};",
                "2: std::io::self is not pure",
            ),
            ("use std::thread::*;", "1: std::thread::* is not pure"),
            (
                "fn f() {\n    ::std::env::var(\"HOME\").ok();\n}",
                "2: std::env::var is not pure",
            ),
            ("use std as s;", "1: std under another name cannot be checked"),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text).first().map(String::as_str), Some(expected), "{text}");
        }
    }

    #[test]
    fn clocks_seeded_maps_and_printing_are_found_however_they_are_imported() {
        for text in [
            "let now = std::time::SystemTime::now();",
            "use std::time::{Duration, Instant};",
            "use std::time; fn f() { time::Instant::now(); }",
            "use std::collections::HashMap;",
            "fn f() { println!(\"x\"); }",
            "fn f() { dbg!(1); }",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn pure_code_comments_and_strings_pass() {
        for text in [
            "use std::{collections::{BTreeMap, BTreeSet}, fmt, sync::Arc};",
            "use std::time::Duration;",
            "// std::fs is not used\n/* nor /* std::env */ here */ fn f() {}",
            "const TEXT: &str = \"std::fs::read\"; const RAW: &str = r#\"std::env \"quoted\" \"#;",
            "fn f<'a>(c: char) -> bool { c == '\"' || c == '\\'' } // std::io",
            "use rustc_hash::FxHashMap; fn print(instant: u8) -> u8 { instant }",
            "fn environment(env: &str, fs: &str) { let std = 1; }",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn code_for_tests_is_left_out_and_code_behind_it_is_not() {
        let text = "#[cfg(test)]\nmod tests {\n    use std::fs;\n    fn f() { if true { } }\n}\n\
            #[cfg(test)]\n#[path = \"x.rs\"]\nmod more;\n\
            #[cfg(all(test, unix))] use std::env;\n\
            #[cfg(not(test))] use std::net::Ipv4Addr;\nuse std::io;";
        assert_eq!(
            found(text),
            ["10: std::net::Ipv4Addr is not pure", "11: std::io is not pure"]
        );
    }

    #[test]
    fn files_of_test_modules_are_left_out() {
        let file = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
        let files = vec![
            file("src/lib.rs", "mod a; #[cfg(test)] mod tests;"),
            file("src/a.rs", "#[cfg(test)] mod checks;"),
            file("src/a/checks.rs", "use std::fs;"),
            file("src/tests.rs", ""),
            file("src/tests/deep.rs", ""),
            file("src/testsuite.rs", ""),
        ];
        let kept: Vec<_> = without_test_files(files)
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        assert_eq!(
            kept,
            ["src/lib.rs", "src/a.rs", "src/testsuite.rs"].map(PathBuf::from)
        );
    }
}
