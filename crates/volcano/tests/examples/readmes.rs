//! Every example is described: in a README of its folder, and in the table of all.

use super::{entries, examples, folders, name, read};

#[test]
fn every_folder_has_a_readme_that_names_all_of_its_files() {
    for folder in folders() {
        let text = read(&folder.join("README.md"));
        for file in entries(&folder) {
            let file = name(&file);
            assert!(
                file == "README.md" || text.contains(&file),
                "{file} is not in {}/README.md",
                folder.display()
            );
        }
    }
}

#[test]
fn the_table_names_all_examples_and_their_files() {
    let table = read(&examples().join("README.md"));
    for entry in entries(&examples()) {
        let example = name(&entry);
        if example == "README.md" {
            continue;
        }
        let line = table
            .lines()
            .find(|line| line.starts_with(&format!("| [{example}]({example}) |")))
            .unwrap_or_else(|| panic!("{example} is not in the table"));
        let files = if entry.is_dir() {
            entries(&entry)
        } else {
            Vec::new()
        };
        for file in files.iter().map(|file| name(file)) {
            assert!(
                file == "README.md" || line.contains(&file),
                "{file} is not in: {line}"
            );
        }
    }
}

/// Paths of examples that a text names.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "/-._".contains(letter);
    text.split(move |letter| !is_part(letter))
        .filter(|word| word.starts_with("examples/"))
        .map(|word| word.trim_end_matches('.'))
}

#[test]
fn what_the_texts_name_is_there() {
    let root = examples().join("..");
    let mut texts = vec![
        root.join("README.md"),
        examples().join("README.md"),
        examples().join("hello-gang.yaml"),
    ];
    texts.extend(folders().iter().map(|folder| folder.join("README.md")));
    texts.extend(
        entries(&root.join("docs"))
            .into_iter()
            .filter(|path| path.is_file()),
    );
    for text in texts {
        for path in paths(&read(&text)) {
            assert!(
                root.join(path).exists(),
                "{}: {path} is not there",
                text.display()
            );
        }
    }
}
